// A convolution by a filter of 3 x 3 with steps of 1 takes 4 multiplications for each place and
// input feature in place of 9, if 2 x 2 places are computed together (Winograd; Lavin and Gray
// 2015). Of a filter that is the same in all runs the transform is taken once.
#include <algorithm>
#include <array>

#include "base/integers.h"
#include "ir/analysis/frozen.h"
#include "kernel/schedule/scheduler.h"
#include "passes/expand/expand.h"
#include "passes/growth.h"

namespace kiln::passes::expand {
namespace {

using ir::Instruction;

constexpr int64_t kWindow = 3, kPlaces = 2, kTile = kPlaces + kWindow - 1;
constexpr double kOfFilter[kTile][kWindow] = {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}};
// Paddings of more than this are mostly places with nothing but padding.
constexpr int64_t kMostPadding = kWindow - 1;
// Instructions between a filter and fixed arrays.
constexpr int kMostSteps = 16;

size_t At(int64_t i) { return static_cast<size_t>(i); }

// How an array that is the same in all runs is made.
struct Fixed {
  bool is_frozen = false;  // of frozen arguments, and constants
  int steps = 0;

  bool Follow(const Instruction& x) {
    if (ir::IsFixed(x)) {
      is_frozen |= !x.IsConstant();
      return true;
    }
    if (++steps > kMostSteps || x.operand_count() == 0) return false;
    const bool is_simple = IsElementwise(x.opcode()) || IsView(x.opcode());
    return is_simple && std::ranges::all_of(x.operands(), [&](const Instruction* operand) {
             return Follow(*operand);
           });
  }
};

class Tiles {
 public:
  Tiles(Builder& b, Instruction* i)
      : i_(i), b_(b), d_(i->attributes().Convolution(Attr::kDimLabels)) {}

  bool AreWorthIt() const {
    const Shape &x = i_->operand(0)->shape(), &w = i_->operand(1)->shape(), &y = i_->shape();
    if (y.rank() != 4 || !HasF32(x) || !HasF32(w) || !HasF32(y)) return false;
    if (i_->attributes().Int(Attr::kFeatureGroupCount, 1) != 1 ||
        i_->attributes().Int(Attr::kBatchGroupCount, 1) != 1) {
      return false;
    }
    for (const WindowDimension& window : i_->attributes().Window(Attr::kWindow)) {
      if (window.size != kWindow || window.stride != 1 || window.base_dilation != 1 ||
          window.window_dilation != 1 || window.reversed || !IsPadding(window.low) ||
          !IsPadding(window.high)) {
        return false;
      }
    }
    int64_t tiles = y.dim(d_.output_batch), places = tiles;
    for (int64_t at : d_.output_spatial) {
      tiles *= CeilDiv(y.dim(at), kPlaces);
      places *= y.dim(at);
    }
    if (!b_.scheduler()->TransformsTiles(tiles, places, x.dim(d_.input_feature),
                                         y.dim(d_.output_feature))) {
      return false;
    }
    Fixed fixed;
    return i_->operand(1)->IsConstant() || (fixed.Follow(*i_->operand(1)) && fixed.is_frozen);
  }

  Instruction* Run() {
    Instruction* products = b_.Add(Opcode::kDot, {TilesOfImages(), Filter()},
                                   {{Attr::kLhsBatchDims, Ints{0}},
                                    {Attr::kRhsBatchDims, Ints{0}},
                                    {Attr::kLhsContractingDims, Ints{4}},
                                    {Attr::kRhsContractingDims, Ints{1}}});
    return Places(products);
  }

 private:
  static bool HasF32(const Shape& shape) {
    return shape.type() == ElementType::kF32 && shape.is_row_major();
  }
  static bool IsPadding(int64_t size) { return size >= 0 && size <= kMostPadding; }

  using Line = std::array<Instruction*, kTile>;
  // B^T d, of four elements one after another.
  Line OfImages(const Line& d) {
    return {b_.Minus(d[0], d[2]), b_.Plus(d[1], d[2]), b_.Minus(d[2], d[1]), b_.Minus(d[1], d[3])};
  }
  // A^T m
  std::array<Instruction*, kPlaces> OfProducts(const Line& m) {
    return {b_.Plus(b_.Plus(m[0], m[1]), m[2]), b_.Minus(b_.Minus(m[1], m[2]), m[3])};
  }

  // [16, batch, rows / 2, columns / 2, features] of images: B^T d B of each tile d.
  Instruction* TilesOfImages() {
    std::vector<int64_t> more;  // to a whole number of tiles
    for (int64_t at : d_.output_spatial) more.push_back(i_->shape().dim(at) % kPlaces);
    Instruction* x = PaddedImages(b_, i_, more);
    std::array<Line, kTile> rows;
    for (int64_t column = 0; column < kTile; ++column) {
      Line line = {};
      for (int64_t row = 0; row < kTile; ++row) {
        std::vector<SliceDimension> slices;
        for (int64_t size : x->shape().dims()) slices.push_back({0, size, 1});
        slices[1] = {row, x->shape().dim(1) - kTile + row + 1, kPlaces};
        slices[2] = {column, x->shape().dim(2) - kTile + column + 1, kPlaces};
        line[At(row)] = b_.Slice(x, std::move(slices));
      }
      line = OfImages(line);
      for (size_t row = 0; row < line.size(); ++row) rows[row][At(column)] = line[row];
    }
    std::vector<Instruction*> all;
    for (const Line& row : rows) {
      for (Instruction* element : OfImages(row)) {
        std::vector<Dimension> dims = element->shape().dimensions();
        dims.insert(dims.begin(), 1);
        all.push_back(b_.Reshape(element, std::move(dims)));
      }
    }
    return b_.Concatenate(std::move(all), 0);
  }

  // [16, inputs, outputs] of filters: G g G^T.
  Instruction* Filter() {
    Instruction* w = i_->operand(1);
    if (w->IsConstant()) return b_.Constant(FilterOf(w->literal()));
    const int64_t inputs = w->shape().dim(d_.kernel_input_feature);
    const int64_t outputs = w->shape().dim(d_.kernel_output_feature);
    w = b_.Transpose(w, {d_.kernel_spatial[0], d_.kernel_spatial[1], d_.kernel_input_feature,
                         d_.kernel_output_feature});
    w = b_.Reshape(w, {kWindow * kWindow, inputs, outputs});
    Literal squares(Shape(ElementType::kF32, {kTile * kTile, kWindow * kWindow}));
    auto to = squares.values<float>().begin();
    for (const auto& row : kOfFilter) {
      for (const auto& column : kOfFilter) {
        for (double r : row) {
          for (double c : column) *to++ = static_cast<float>(r * c);
        }
      }
    }
    return b_.Add(Opcode::kDot, {b_.Constant(std::move(squares)), w},
                  {{Attr::kLhsContractingDims, Ints{1}}, {Attr::kRhsContractingDims, Ints{0}}});
  }

  // The same of known ones.
  Literal FilterOf(const Literal& w) const {
    const std::vector<int64_t> strides = RowMajorStrides(w.shape().dims());
    auto stride = [&](int64_t dimension) { return strides[At(dimension)]; };
    const int64_t inputs = w.shape().dim(d_.kernel_input_feature);
    const int64_t outputs = w.shape().dim(d_.kernel_output_feature);
    Literal made(Shape(ElementType::kF32, {kTile * kTile, inputs, outputs}));
    const std::span<const float> from = w.values<float>();
    const std::span<float> to = made.values<float>();
    for (int64_t in = 0; in < inputs; ++in) {
      for (int64_t out = 0; out < outputs; ++out) {
        const int64_t first =
            in * stride(d_.kernel_input_feature) + out * stride(d_.kernel_output_feature);
        double rows[kTile][kWindow] = {};
        for (int64_t r = 0; r < kTile; ++r) {
          for (int64_t c = 0; c < kWindow; ++c) {
            for (int64_t k = 0; k < kWindow; ++k) {
              rows[r][c] +=
                  kOfFilter[r][k] * double{from[At(first + k * stride(d_.kernel_spatial[0]) +
                                                   c * stride(d_.kernel_spatial[1]))]};
            }
          }
        }
        for (int64_t r = 0; r < kTile; ++r) {
          for (int64_t c = 0; c < kTile; ++c) {
            double sum = 0;
            for (int64_t k = 0; k < kWindow; ++k) sum += rows[r][k] * kOfFilter[c][k];
            to[At(((r * kTile + c) * inputs + in) * outputs + out)] = static_cast<float>(sum);
          }
        }
      }
    }
    return made;
  }

  // The result of products: A^T m A of each tile m, in the result's order of dimensions. Places
  // beyond it are dropped.
  Instruction* Places(Instruction* products) {
    const std::vector<int64_t> tiles = products->shape().dims();
    std::array<std::array<Instruction*, kTile>, kPlaces> rows;
    for (int64_t column = 0; column < kTile; ++column) {
      Line line = {};
      for (int64_t row = 0; row < kTile; ++row) {
        std::vector<SliceDimension> slices;
        for (int64_t size : tiles) slices.push_back({0, size, 1});
        const int64_t number = row * kTile + column;
        slices[0] = {number, number + 1, 1};
        line[At(row)] = b_.Reshape(b_.Slice(products, std::move(slices)),
                                   {tiles[1], tiles[2], 1, tiles[3], 1, tiles[4]});
      }
      const auto made = OfProducts(line);
      for (size_t row = 0; row < made.size(); ++row) rows[row][At(column)] = made[row];
    }
    std::vector<Instruction*> lines;
    for (const Line& row : rows) {
      const auto made = OfProducts(row);
      lines.push_back(b_.Concatenate({made[0], made[1]}, 4));
    }
    Instruction* y = b_.Reshape(b_.Concatenate(std::move(lines), 2),
                                {tiles[1], tiles[2] * kPlaces, tiles[3] * kPlaces, tiles[4]});
    const int64_t height = i_->shape().dim(d_.output_spatial[0]);
    const int64_t width = i_->shape().dim(d_.output_spatial[1]);
    if (height % kPlaces != 0 || width % kPlaces != 0) {
      y = b_.Slice(y, {{0, tiles[1], 1}, {0, height, 1}, {0, width, 1}, {0, tiles[4], 1}});
    }
    return InOrderOfResult(b_, i_, y);
  }

  Instruction* i_;
  Builder& b_;
  const ConvolutionDimensions& d_;
};

}  // namespace
}  // namespace kiln::passes::expand

namespace kiln::passes {

using expand::Builder;
using ir::Instruction;

// convolution(x, w) => A^T [(B^T d B) . (G w G^T)] A   for each tile d of 4 x 4 elements of x, the
// product being a dot over the input features for each of the 16 elements, where
//
//         1  0 -1  0         1    0    0             1  1  1  0
//   B^T = 0  1  1  0     G = 1/2  1/2  1/2     A^T = 0  1 -1 -1
//         0 -1  1  0         1/2 -1/2  1/2
//         0  1  0 -1         0    0    1
Result<bool> TransformConvolutions(ir::Module& module, const PassContext& context) {
  const auto scheduler = kernel::SchedulerFor(TargetOf(context));
  bool changed = false;
  for (ir::Computation* c : module.CalleesFirst()) {
    if (!c->MayHold(Opcode::kConvolution)) continue;
    std::vector<Instruction*> found;
    for (Instruction* i : c->instructions()) {
      if (i->opcode() == Opcode::kConvolution) found.push_back(i);
    }
    for (Instruction* i : found) {
      KILN_RETURN_IF_ERROR(CheckGrowth(*c, context));
      Builder b(i, *scheduler);
      expand::Tiles tiles(b, i);
      if (!tiles.AreWorthIt()) continue;
      Instruction* value = tiles.Run();
      KILN_RETURN_IF_ERROR(b.status().WithContext(Cat("convolution '", i->name(), "'")));
      c->ReplaceAllUses(i, value);
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln::passes

// A convolution with one input and one output feature in each group ("depthwise") is a sum of few
// products for each element: an element's window is written out. Neighbouring places, which read
// most of their windows' elements together, are parts of the result that a kernel makes at one
// point (kernel/parts.h). Images with their features first are transposed before and behind.
#include <algorithm>

#include "kernel/schedule/scheduler.h"
#include "passes/expand/expand.h"

namespace kiln::passes::expand {
namespace {

using ir::Instruction;

constexpr int64_t kMostElements = 25;  // of a window
// Vectors run along the features.
constexpr int64_t kFewestFeatures = 8;
// Places made together along a dimension: of an even number two, of few all.
constexpr int64_t kFewPlaces = 7;

size_t At(int64_t i) { return static_cast<size_t>(i); }

class Channels {
 public:
  Channels(Builder& b, Instruction* i)
      : i_(i),
        b_(b),
        d_(i->attributes().Convolution(Attr::kDimLabels)),
        window_(i->attributes().Window(Attr::kWindow)) {}

  bool AreWorthIt() const {
    const Shape &x = i_->operand(0)->shape(), &w = i_->operand(1)->shape(), &y = i_->shape();
    if (!b_.scheduler()->SharesWindows() || y.rank() != 4) return false;
    const ElementType type = y.type();
    if ((type != ElementType::kF32 && type != ElementType::kF64) || x.type() != type ||
        w.type() != type) {
      return false;
    }
    if (!x.is_row_major() || !y.is_row_major()) return false;
    const int64_t groups = i_->attributes().Int(Attr::kFeatureGroupCount, 1);
    if (groups < kFewestFeatures || x.dim(d_.input_feature) != groups ||
        y.dim(d_.output_feature) != groups || y.num_elements() == 0 || x.num_elements() == 0) {
      return false;
    }
    int64_t elements = 1;
    for (const WindowDimension& window : window_) {
      if (window.base_dilation != 1 || window.reversed || window.size > kMostElements ||
          std::abs(window.low) > kMostElements || std::abs(window.high) > kMostElements) {
        return false;
      }
      elements *= window.size;
    }
    return elements <= kMostElements && elements > 0;
  }

  Instruction* Run() {
    x_ = PaddedImages(b_, i_);
    w_ = b_.Transpose(i_->operand(1), {d_.kernel_spatial[0], d_.kernel_spatial[1],
                                       d_.kernel_input_feature, d_.kernel_output_feature});
    rows_ = i_->shape().dim(d_.output_spatial[0]);
    columns_ = i_->shape().dim(d_.output_spatial[1]);
    const int64_t across = columns_ % 2 == 0 ? 2 : columns_ <= kFewPlaces ? columns_ : 1;
    const int64_t down = rows_ % 2 == 0 && across <= 2 ? 2 : 1;
    const int64_t batch = x_->shape().dim(0), features = x_->shape().dim(3);
    std::vector<Instruction*> lines;
    for (int64_t row = 0; row < down; ++row) {
      std::vector<Instruction*> line;
      for (int64_t column = 0; column < across; ++column) {
        line.push_back(b_.Reshape(Part(row, down, column, across),
                                  {batch, rows_ / down, 1, columns_ / across, 1, features}));
      }
      lines.push_back(b_.Concatenate(std::move(line), 4));
    }
    Instruction* y =
        b_.Reshape(b_.Concatenate(std::move(lines), 2), {batch, rows_, columns_, features});
    return InOrderOfResult(b_, i_, y);
  }

 private:
  // Every `down`th row and `across`th column of the result from these on.
  Instruction* Part(int64_t row, int64_t down, int64_t column, int64_t across) {
    const WindowDimension &v = window_[0], &h = window_[1];
    const Shape& shape = x_->shape();
    Instruction* sum = nullptr;
    for (int64_t r = 0; r < v.size; ++r) {
      for (int64_t c = 0; c < h.size; ++c) {
        std::vector<SliceDimension> slices;
        for (int64_t size : shape.dims()) slices.push_back({0, size, 1});
        slices[1] = Places(row * v.stride + r * v.window_dilation, rows_ / down, down * v.stride);
        slices[2] =
            Places(column * h.stride + c * h.window_dilation, columns_ / across, across * h.stride);
        Instruction* x = b_.Slice(x_, std::move(slices));
        Instruction* weights =
            b_.Slice(w_, {{r, r + 1, 1}, {c, c + 1, 1}, {0, 1, 1}, {0, shape.dim(3), 1}});
        weights = b_.Broadcast(b_.Reshape(weights, {shape.dim(3)}), x->shape().dimensions(), {3});
        Instruction* product = b_.Times(x, weights);
        sum = sum ? b_.Plus(sum, product) : product;
      }
    }
    return sum;
  }

  static SliceDimension Places(int64_t first, int64_t count, int64_t stride) {
    return {first, first + (count - 1) * stride + 1, stride};
  }

  Instruction* i_;
  Builder& b_;
  const ConvolutionDimensions& d_;
  const std::vector<WindowDimension>& window_;
  Instruction *x_ = nullptr, *w_ = nullptr;
  int64_t rows_ = 0, columns_ = 0;  // of the result
};

}  // namespace

Instruction* PaddedImages(Builder& b, Instruction* convolution, std::span<const int64_t> more) {
  const auto& d = convolution->attributes().Convolution(Attr::kDimLabels);
  const auto& window = convolution->attributes().Window(Attr::kWindow);
  Instruction* x = convolution->operand(0);
  std::vector<PaddingDimension> padding(At(d.rank()));
  for (size_t k = 0; k < window.size(); ++k) {
    const int64_t beyond = more.empty() ? 0 : more[k];
    padding[At(d.input_spatial[k])] = {window[k].low, window[k].high + beyond, 0};
  }
  if (std::ranges::any_of(padding, [](const auto& p) { return p != PaddingDimension{}; })) {
    x = b.Add(Opcode::kPad, {x, b.Scalar(x->shape().type(), 0)}, {{Attr::kPadding, padding}});
  }
  Ints order = {d.input_batch};
  order.insert(order.end(), d.input_spatial.begin(), d.input_spatial.end());
  order.push_back(d.input_feature);
  return b.Transpose(x, std::move(order));
}

Instruction* InOrderOfResult(Builder& b, Instruction* convolution, Instruction* y) {
  const auto& d = convolution->attributes().Convolution(Attr::kDimLabels);
  Ints order(At(d.rank()));
  order[At(d.output_batch)] = 0;
  for (size_t k = 0; k < d.output_spatial.size(); ++k) {
    order[At(d.output_spatial[k])] = static_cast<int64_t>(k) + 1;
  }
  order[At(d.output_feature)] = d.rank() - 1;
  return b.Transpose(y, std::move(order));
}

// convolution(x, w), feature_group_count=features => sum of slice(pad(x)) * w[r, c]   over the
// window
Result<Instruction*> ConvolutionByChannels(Builder& b, Instruction* i, Expansion expand) {
  Channels channels(b, i);
  return channels.AreWorthIt() ? channels.Run() : expand(b, i);
}

}  // namespace kiln::passes::expand

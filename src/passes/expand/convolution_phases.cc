// A convolution with holes between its operand's elements, as the gradient of a strided one by its
// image, has a sum over holes at most of its places: of a window's elements every d-th one meets an
// element. Which ones they are repeats after d places. The places of a phase are therefore a
// convolution without holes, with every d-th element of the window.
#include <algorithm>

#include "base/integers.h"
#include "passes/expand/expand.h"

namespace kiln::passes::expand {
namespace {

using ir::Instruction;
using Window = std::vector<WindowDimension>;
using Slices = std::vector<SliceDimension>;

// Convolutions of fewer multiplications, or of more phases together, stay as they are.
constexpr int64_t kFewMultiplications = 1 << 18;
constexpr int64_t kMostPhases = 16;
constexpr int64_t kMostPadding = int64_t{1} << 31;

size_t At(int64_t i) { return static_cast<size_t>(i); }

class Phases {
 public:
  Phases(Builder& b, Instruction* i, Expansion expand)
      : i_(i),
        b_(b),
        expand_(expand),
        d_(i->attributes().Convolution(Attr::kDimLabels)),
        window_(i->attributes().Window(Attr::kWindow)),
        kernel_(i->operand(1)) {}

  bool AreWorthIt() const {
    const Shape &result = i_->shape(), &w = kernel_->shape();
    if (result.num_elements() == 0 || w.num_elements() == 0) return false;
    int64_t phases = 1;
    for (size_t k = 0; k < window_.size(); ++k) {
      if (!HasPhases(k)) continue;
      if (window_[k].base_dilation > kMostPhases) return false;
      phases *= window_[k].base_dilation;
      if (phases > kMostPhases) return false;
    }
    const int64_t sum = w.num_elements() / w.dim(d_.kernel_output_feature);
    return phases > 1 && sum >= kFewMultiplications / result.num_elements();
  }

  Result<Instruction*> Run() {
    Ints reversed;
    for (size_t k = 0; k < window_.size(); ++k) {
      if (!HasPhases(k) || !window_[k].reversed) continue;
      reversed.push_back(d_.kernel_spatial[k]);
      window_[k].reversed = false;
    }
    if (!reversed.empty()) {
      kernel_ = b_.Add(Opcode::kReverse, {kernel_}, {{Attr::kDimensions, std::move(reversed)}});
    }
    for (int64_t size : kernel_->shape().dims()) slices_.push_back({0, size, 1});
    return From(0);
  }

 private:
  bool HasPhases(size_t k) const {
    const WindowDimension& w = window_[k];
    return w.base_dilation > 1 && w.stride == 1 && w.window_dilation == 1 && w.low < kMostPadding &&
           w.low > -kMostPadding && i_->operand(0)->shape().dim(d_.input_spatial[k]) > 1;
  }

  // The places of the phases chosen so far, along dimensions before k, and all along the others.
  Result<Instruction*> From(size_t k) {
    if (k == window_.size()) return Part();
    if (!HasPhases(k)) return From(k + 1);
    const WindowDimension whole = window_[k];
    SliceDimension& slice = slices_[At(d_.kernel_spatial[k])];
    const int64_t d = whole.base_dilation, size = i_->operand(0)->shape().dim(d_.input_spatial[k]);
    const int64_t wanted = i_->shape().dim(d_.output_spatial[k]);
    std::vector<Instruction*> phases;
    for (int64_t r = 0; r < d; ++r) {
      // Place d q + r and element first + d t of the window meet element q + t - low.
      const int64_t first = ((whole.low - r) % d + d) % d;
      if (first >= whole.size) {
        phases.push_back(nullptr);
        continue;
      }
      WindowDimension& w = window_[k];
      w.size = CeilDiv(whole.size - first, d);
      w.low = (whole.low - r - first) / d;
      // Phases that are put together have as many places as the first.
      const int64_t places =
          CeilDiv(whole.size == 1 ? std::max(wanted - r, int64_t{1}) : wanted, d);
      w.high = places + w.size - 1 - size - w.low;
      slice = {first, first + (w.size - 1) * d + 1, w.size == 1 ? 1 : d};
      w.base_dilation = 1;
      KILN_ASSIGN_OR_RETURN(phases.emplace_back(), From(k + 1));
      window_[k] = whole;
    }
    slice = {0, whole.size, 1};
    return Interleaved(phases, d_.output_spatial[k]);
  }

  Result<Instruction*> Part() {
    Attributes attributes = i_->attributes();
    attributes.Set(Attr::kWindow, window_);
    Instruction* part = b_.Add(Opcode::kConvolution, {i_->operand(0), b_.Slice(kernel_, slices_)},
                               std::move(attributes), Shape::Scalar(i_->shape().type()));
    KILN_ASSIGN_OR_RETURN(Instruction * value, expand_(b_, part));
    b_.computation()->Remove(part);
    return value;
  }

  // The places of all phases along a dimension, 0 of those that are null.
  Instruction* Interleaved(std::vector<Instruction*>& phases, int64_t dimension) {
    const auto count = static_cast<int64_t>(phases.size());
    const int64_t wanted = i_->shape().dim(dimension);
    const auto made = std::ranges::find_if(phases, [](Instruction* x) { return x != nullptr; });
    const Shape shape = (*made)->shape();
    if (std::ranges::count(phases, nullptr) == count - 1) {
      std::vector<PaddingDimension> padding(At(shape.rank()));
      const int64_t before = made - phases.begin();
      padding[At(dimension)] = {before, wanted - before - (shape.dim(dimension) - 1) * count - 1,
                                count - 1};
      Instruction* zero = b_.Constant(Literal(Shape::Scalar(shape.type())));
      return b_.Add(Opcode::kPad, {*made, zero}, {{Attr::kPadding, std::move(padding)}});
    }
    std::vector<Dimension> dims = shape.dimensions();
    dims.insert(dims.begin() + dimension + 1, 1);
    for (Instruction*& phase : phases) {
      phase = b_.Reshape(phase ? phase : b_.Number(shape, 0), dims);
    }
    Instruction* all = b_.Concatenate(phases, dimension + 1);
    dims = shape.dimensions();
    dims[At(dimension)] = shape.dim(dimension) * count;
    all = b_.Reshape(all, dims);
    if (shape.dim(dimension) * count == wanted) return all;
    Slices slices;
    for (int64_t size : all->shape().dims()) slices.push_back({0, size, 1});
    slices[At(dimension)].limit = wanted;
    return b_.Slice(all, std::move(slices));
  }

  Instruction* i_;
  Builder& b_;
  const Expansion expand_;
  const ConvolutionDimensions& d_;
  Window window_;        // of the phases chosen so far
  Instruction* kernel_;  // not reversed along dimensions with phases
  Slices slices_;        // of it
};

}  // namespace

// convolution(x, w), lhs_dilate=d => concatenate(convolution(x, w[0::d]), ...)   interleaved
Result<Instruction*> ConvolutionByPhases(Builder& b, Instruction* i, Expansion expand) {
  Phases phases(b, i, expand);
  return phases.AreWorthIt() ? phases.Run() : expand(b, i);
}

}  // namespace kiln::passes::expand

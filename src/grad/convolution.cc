// The transposes of convolutions, which are convolutions again. x is lhs, w the filter, y the
// result, t its cotangent. In formulas n is an element of the batch, i an input feature, o an
// output feature, g a group, p a place, j an element of x and k one of the window, where
//   p stride + k dilation = j base_dilation + low
#include <algorithm>

#include "grad/rules.h"
#include "grad/windows.h"
#include "ops/window.h"

namespace kiln::grad {

using ir::Instruction;

namespace {

class Convolution {
 public:
  Convolution(Builder& b, Instruction* op, Instruction* t)
      : b_(b),
        op_(op),
        x_(op->operand(0)),
        w_(op->operand(1)),
        t_(t),
        dims_(op->attributes().Convolution(Attr::kDimLabels)),
        window_(op->attributes().Window(Attr::kWindow)),
        feature_groups_(op->attributes().Int(Attr::kFeatureGroupCount, 1)),
        batch_groups_(op->attributes().Int(Attr::kBatchGroupCount, 1)) {}

  // y[n, g o, p] = sum over i, k of x[n, g i, j] w[k, i, g o]:
  //   dx[n, g i, j] = sum over o, k of t[n, g o, p] w[k, i, g o]
  // which has as many groups of features, o as input feature, and the window backwards. With groups
  // of the batch y[n, g o, p] = sum over i, k of x[g n, i, j] w[k, i, g o]:
  //   dx[g n, i, j] = sum over o, k of t[n, g o, p] w[k, i, g o]
  // which has groups of features, (g, i) as output features, of which g then goes to the batch.
  Instruction* OfInput() {
    if (IsEmpty()) return b_.Zeros(x_);
    std::vector<WindowDimension> window = window_;
    for (size_t k = 0; k < window.size(); ++k) {
      window[k] = Transposed(window[k], x_->shape().dimension(dims_.input_spatial[k]),
                             op_->shape().dimension(dims_.output_spatial[k]));
    }
    const int64_t groups = std::max(feature_groups_, batch_groups_);
    ConvolutionDimensions dims;
    dims.input_batch = dims_.output_batch;
    dims.input_feature = dims_.output_feature;
    dims.input_spatial = dims_.output_spatial;
    dims.kernel_input_feature = dims_.kernel_output_feature;
    dims.kernel_output_feature = dims_.kernel_input_feature;
    dims.kernel_spatial = dims_.kernel_spatial;
    dims.output_batch = dims_.input_batch;
    dims.output_feature = dims_.input_feature;
    dims.output_spatial = dims_.input_spatial;
    Instruction* filter =
        MoveGroups(Wide(w_), dims_.kernel_output_feature, dims_.kernel_input_feature, groups);
    Instruction* dx = Convolve(t_, filter, std::move(window), std::move(dims), groups, 1);
    dx = MoveGroups(dx, dims_.input_feature, dims_.input_batch, batch_groups_);
    return b_.Convert(dx, x_->shape().type());
  }

  //   dw[k, i, g o] = sum over n, p of x[n, g i, j] t[n, g o, p]
  // where x has i as its batch and n as its feature, and t is the filter, whose places are the
  // window's parts; groups of features are groups of x's batch here, and the other way round.
  Instruction* OfFilter() {
    if (IsEmpty()) return b_.Zeros(w_);
    std::vector<WindowDimension> window;
    Ints reversed;
    for (size_t k = 0; k < window_.size(); ++k) {
      if (!AppendFilterWindow(k, window)) return b_.Zeros(w_);
      if (window_[k].reversed) reversed.push_back(dims_.kernel_spatial[k]);
    }
    ConvolutionDimensions dims;
    dims.input_batch = dims_.input_feature;
    dims.input_feature = dims_.input_batch;
    dims.input_spatial = dims_.input_spatial;
    dims.kernel_input_feature = dims_.output_batch;
    dims.kernel_output_feature = dims_.output_feature;
    dims.kernel_spatial = dims_.output_spatial;
    dims.output_batch = dims_.kernel_input_feature;
    dims.output_feature = dims_.kernel_output_feature;
    dims.output_spatial = dims_.kernel_spatial;
    Instruction* dw =
        Convolve(Wide(x_), t_, std::move(window), std::move(dims), batch_groups_, feature_groups_);
    if (!reversed.empty()) dw = b_.Add(Opcode::kReverse, {dw}, {{Attr::kDimensions, reversed}});
    return b_.Convert(dw, w_->shape().type());
  }

 private:
  bool IsEmpty() const {
    for (const Instruction* x : {x_, w_, op_}) {
      if (std::ranges::count(x->shape().dims(), 0) > 0) return true;
    }
    return false;
  }

  // In the result's element type.
  Instruction* Wide(Instruction* x) { return b_.Convert(x, op_->shape().type()); }

  // The window's place k of dw: x's element j is there with the place p of t.
  bool AppendFilterWindow(size_t k, std::vector<WindowDimension>& window) {
    const WindowDimension& w = window_[k];
    const Dimension& from = x_->shape().dimension(dims_.input_spatial[k]);
    const Dimension& to = op_->shape().dimension(dims_.output_spatial[k]);
    if (!from.is_constant() || !to.is_constant()) {
      b_.Fail(Unimplemented("'", op_->name(),
                            "': convolution has no derivative by its filter where ",
                            "the window moves along a dimension of ", from));
      return false;
    }
    window.push_back({.size = to.size(),
                      .stride = w.window_dilation,
                      .low = w.low,
                      .high = (w.size - 1) * w.window_dilation + (to.size() - 1) * w.stride -
                              (from.size() - 1) * w.base_dilation - w.low,
                      .base_dilation = w.base_dilation,
                      .window_dilation = w.stride});
    return true;
  }

  // x with the groups of one dimension (the groups first, then their parts) moved to another one.
  Instruction* MoveGroups(Instruction* x, int64_t from, int64_t to, int64_t groups) {
    if (groups == 1) return x;
    std::vector<Dimension> parted, joined = x->shape().dimensions();
    Ints order;
    for (int64_t d = 0; d < x->shape().rank(); ++d) {
      const auto next = static_cast<int64_t>(parted.size());
      if (d == from) parted.emplace_back(groups);
      parted.push_back(d == from ? PartOf(x->shape().dimension(d), groups)
                                 : x->shape().dimension(d));
      if (d == to) order.push_back(from);
      order.push_back(d == from ? next + 1 : next);
    }
    joined[static_cast<size_t>(from)] = PartOf(joined[static_cast<size_t>(from)], groups);
    joined[static_cast<size_t>(to)] = TimesOf(joined[static_cast<size_t>(to)], groups);
    return b_.Reshape(b_.Transpose(b_.Reshape(x, std::move(parted)), std::move(order)),
                      std::move(joined));
  }

  Dimension PartOf(const Dimension& size, int64_t groups) {
    return Kept(Dimension::Quotient(size, groups));
  }
  Dimension TimesOf(const Dimension& size, int64_t groups) {
    return Kept(Dimension::Product(size, groups));
  }
  Dimension Kept(Result<Dimension> size) {
    if (size.ok()) return *size;
    b_.Fail(size.status());
    return 0;
  }

  Instruction* Convolve(Instruction* x, Instruction* filter, std::vector<WindowDimension> window,
                        ConvolutionDimensions dims, int64_t feature_groups, int64_t batch_groups) {
    Attributes attributes = {{Attr::kWindow, std::move(window)},
                             {Attr::kDimLabels, std::move(dims)}};
    if (feature_groups > 1) attributes.Set(Attr::kFeatureGroupCount, feature_groups);
    if (batch_groups > 1) attributes.Set(Attr::kBatchGroupCount, batch_groups);
    return b_.Add(Opcode::kConvolution, {x, filter}, std::move(attributes),
                  Shape::Scalar(op_->shape().type()));
  }

  Builder& b_;
  Instruction *op_, *x_, *w_, *t_;
  const ConvolutionDimensions& dims_;
  const std::vector<WindowDimension>& window_;
  const int64_t feature_groups_, batch_groups_;
};

}  // namespace

template <>
bool Transpose<Opcode::kConvolution>(Reverse& reverse, Instruction* op,
                                     const Derivative& cotangent) {
  Convolution convolution(reverse.builder(), op, cotangent.array);
  if (reverse.IsActive(op->operand(0))) reverse.Add(op->operand(0), convolution.OfInput());
  if (reverse.IsActive(op->operand(1))) reverse.Add(op->operand(1), convolution.OfFilter());
  return true;
}

}  // namespace kiln::grad

// convolution(x, w) => dot(patches(pad(x)), w): the elements under the windows are a view of the
// padded array, read in place by the product. Only the padding is made in memory.
#include <algorithm>
#include <numeric>
#include <ranges>

#include "kernel/schedule/scheduler.h"
#include "ops/window.h"
#include "passes/expand/expand.h"

namespace kiln::passes::expand {
namespace {

using ir::Instruction;

// An array whose padding and holes would make it more than so many times as large is not padded:
// the sum asks of each element whether it is there.
constexpr int64_t kMostPadding = 16;
// Of fewer output features of a group the sum is vectors of other dimensions, or of the input
// features.
constexpr int64_t kFewFeatures = 4;
// Short sums round their products before adding them, in order, as other implementations do; it
// matters if a sum's terms cancel.
constexpr int64_t kFewProducts = 1 << 14;
constexpr int64_t kShortLine = 8;
constexpr int64_t kCacheWay = 4096;

size_t At(int64_t i) { return static_cast<size_t>(i); }

bool IsNarrow(ElementType type) { return IsHalf(type) || (IsInteger(type) && BitWidth(type) < 32); }

// The type of computation for products and sums.
ElementType WideType(ElementType type) {
  if (IsHalf(type)) return ElementType::kF32;
  if (!IsNarrow(type)) return type;
  return IsSigned(type) ? ElementType::kS32 : ElementType::kU32;
}

// A copy's memory goes like the original's.
Instruction* InLayout(Instruction* copy, const Instruction& original) {
  Shape shape = copy->shape();
  shape.set_minor_to_major(original.shape().minor_to_major());
  copy->set_shape(std::move(shape));
  return copy;
}

class SumsOfProducts {
 public:
  SumsOfProducts(Builder& b, Instruction* i)
      : i_(i),
        b_(b),
        d_(i->attributes().Convolution(Attr::kDimLabels)),
        feature_groups_(i->attributes().Int(Attr::kFeatureGroupCount, 1)),
        batch_groups_(i->attributes().Int(Attr::kBatchGroupCount, 1)),
        groups_(feature_groups_ * batch_groups_),
        spatial_of_(At(d_.rank()), -1) {
    for (size_t k = 0; k < d_.input_spatial.size(); ++k) {
      spatial_of_[At(d_.input_spatial[k])] = static_cast<int64_t>(k);
    }
  }

  Result<Instruction*> Run() {
    Instruction* result = nullptr;
    if (i_->shape().num_elements() == 0 || i_->operand(1)->shape().num_elements() == 0) {
      result = b_.Number(i_->shape(), 0);
    } else {
      ChooseWindows();
      rounds_ = RoundsProducts() && HasFewProducts();
      Instruction* x = PatchesOfLhs();
      Instruction* w = PartsOfRhs();
      bool as_sum = !in_place_ || out_features_ < kFewFeatures || rounds_;
      result = as_sum ? SumOfProducts(x, w) : Product(x, w);
    }
    if (!(result->shape() == i_->shape())) result->set_shape(i_->shape());
    return result;
  }

 private:
  // The role of a dimension of an operand or of the result, with groups as dimensions of their own;
  // the dimensions of windows and of positions are numbered.
  struct Role {
    enum Kind { kGroup, kBatch, kInput, kOutput, kPlace, kWindow } kind;
    int64_t number = 0;
    bool operator==(const Role&) const = default;
  };
  using Roles = std::vector<Role>;

  static Ints NumbersOf(const Roles& wanted, const Roles& among) {
    Ints numbers;
    for (const Role& role : wanted) {
      numbers.push_back(std::ranges::find(among, role) - among.begin());
    }
    return numbers;
  }

  // Of types that hold the products of others nothing is rounded.
  bool RoundsProducts() const {
    const ElementType type = i_->shape().type();
    return (IsFloat(type) || IsComplex(type)) && !IsHalf(type) &&
           i_->operand(0)->shape().type() == type;
  }

  bool HasFewProducts() const {
    const Shape& w = i_->operand(1)->shape();
    const int64_t sum = w.num_elements() / w.dim(d_.kernel_output_feature);
    return sum <= kFewProducts / i_->shape().num_elements();
  }

  // The padding around and between lhs's elements, and the windows of the padded array.
  void ChooseWindows() {
    const auto& window = i_->attributes().Window(Attr::kWindow);
    const Shape& shape = i_->operand(0)->shape();
    padding_.assign(At(d_.rank()), {});
    view_.assign(At(d_.rank()), {});
    int64_t padded = 1;
    auto grow = [&](int64_t size) {
      if (__builtin_mul_overflow(padded, std::max<int64_t>(size, 1), &padded)) padded = INT64_MAX;
    };
    for (int64_t at = 0; at < d_.rank(); ++at) {
      const int64_t k = spatial_of_[At(at)], size = shape.dim(at);
      if (k < 0) {
        grow(size);
        continue;
      }
      WindowDimension w = window[At(k)];
      if (w.reversed) reversed_.push_back(d_.kernel_spatial[At(k)]);
      w.reversed = false;
      if (size <= 1) w.base_dilation = 1;
      // Behind the last window nothing is needed.
      const int64_t places = i_->shape().dim(d_.output_spatial[At(k)]);
      const int64_t base = size == 0 ? 0 : (size - 1) * w.base_dilation + 1;
      w.high = (places - 1) * w.stride + (w.size - 1) * w.window_dilation + 1 - base - w.low;
      view_[At(at)] = w;
      PaddingDimension& p = padding_[At(at)];
      p = {std::max<int64_t>(w.low, 0), std::max<int64_t>(w.high, 0), w.base_dilation - 1};
      int64_t all = 0;
      if (__builtin_add_overflow(base, p.low, &all) || __builtin_add_overflow(all, p.high, &all)) {
        all = INT64_MAX;
      }
      grow(all);
      pads_ |= p != PaddingDimension{};
    }
    in_place_ = !pads_ || padded / kMostPadding <= shape.num_elements() + 1024;
    if (!in_place_) return;
    for (WindowDimension& w : view_) {
      w.low = std::min<int64_t>(w.low, 0);
      w.high = std::min<int64_t>(w.high, 0);
      w.base_dilation = 1;
    }
    if (pads_) SpreadImages();
  }

  // Where lines are short, the rows of the product's tiles are of several images. If these are a
  // multiple of kCacheWay apart, the rows share a few sets of the first-level cache: lines get one
  // more element.
  void SpreadImages() {
    const Shape& shape = i_->operand(0)->shape();
    const Ints order = MajorToMinor(shape);
    const auto last = std::ranges::find_if(order | std::views::reverse,
                                           [&](int64_t at) { return spatial_of_[At(at)] >= 0; });
    if (order[0] != d_.input_batch || last == order.rend()) return;
    const WindowDimension& w = view_[At(*last)];
    const int64_t places = i_->shape().dim(d_.output_spatial[At(spatial_of_[At(*last)])]);
    if (places >= kShortLine || w.size == 1 || shape.dim(d_.input_batch) < kShortLine) return;
    int64_t distance = BitWidth(shape.type()) / 8;
    for (int64_t at : order | std::views::drop(1)) {
      const PaddingDimension& p = padding_[At(at)];
      distance *= (shape.dim(at) - 1) * (p.interior + 1) + 1 + p.low + p.high;
    }
    if (distance % kCacheWay != 0) return;
    ++padding_[At(*last)].high;
    --view_[At(*last)].high;
  }

  // Whether the gemm multiplies elements of such types as they are, neighbours along the sum being
  // features.
  bool StaysNarrow(const Shape& shape, ElementType lhs, ElementType rhs) const {
    const bool features_last = MajorToMinor(shape).back() == d_.input_feature;
    return b_.scheduler()->KeepsNarrow(
        lhs, rhs, features_last ? shape.dim(d_.input_feature) / feature_groups_ : 1);
  }

  // x in the type in which it is read in windows: conversions are done once before, not in each of
  // them.
  Instruction* ForWindows(Instruction* x) {
    const ElementType type = x->shape().type();
    ElementType to = type;
    if (IsNarrow(type)) {
      const ElementType rhs = i_->operand(1)->shape().type();
      if (!StaysNarrow(x->shape(), type, rhs)) {
        const bool bytes = IsInteger(type) && BitWidth(type) == 8;
        const bool as_s16 = bytes && StaysNarrow(x->shape(), ElementType::kS16, rhs);
        to = as_s16 ? ElementType::kS16 : WideType(i_->shape().type());
      }
    } else if (type == ElementType::kF32 && b_.scheduler()->RoundsToBf16() &&
               StaysNarrow(x->shape(), ElementType::kBF16, ElementType::kBF16)) {
      to = ElementType::kBF16;
    }
    return to == type ? x : InLayout(b_.Convert(x, to), *x);
  }

  // [..., group, ...]: lhs's dimensions, then the window's.
  Instruction* PatchesOfLhs() {
    Instruction* x = i_->operand(0);
    const bool sees = std::ranges::any_of(view_, [](const auto& w) { return !IsTrivial(w); });
    if (sees && in_place_) x = ForWindows(x);
    if (pads_ && in_place_) {
      Instruction* zero = b_.Constant(Literal(Shape::Scalar(x->shape().type())));
      x = InLayout(b_.Add(Opcode::kPad, {x, zero}, {{Attr::kPadding, padding_}}), *x);
    }
    std::vector<Dimension> dims;
    auto add = [&](Role role, int64_t size) {
      x_roles_.push_back(role);
      dims.emplace_back(size);
    };
    for (int64_t at = 0; at < d_.rank(); ++at) {
      const int64_t k = spatial_of_[At(at)], size = i_->operand(0)->shape().dim(at);
      if (k >= 0) {
        add({Role::kPlace, k}, i_->shape().dim(d_.output_spatial[At(k)]));
        continue;
      }
      const bool batch = at == d_.input_batch;
      const int64_t groups = batch ? batch_groups_ : feature_groups_;
      if (groups > 1) add({Role::kGroup}, groups);
      add({batch ? Role::kBatch : Role::kInput}, size / groups);
    }
    if (sees) {
      x = b_.Add(Opcode::kPatches, {x}, {{Attr::kWindow, view_}});
      for (int64_t at = 0; at < d_.rank(); ++at) {
        const int64_t k = spatial_of_[At(at)];
        if (k >= 0) add({Role::kWindow, k}, view_[At(at)].size);
      }
    }
    x = b_.Reshape(x, std::move(dims));
    // Sums go through the array's memory in order, or, where that tells, through the window and
    // then the features.
    Ints order = rounds_ ? d_.input_spatial : MajorToMinor(i_->operand(0)->shape());
    if (rounds_) order.push_back(d_.input_feature);
    for (int64_t at : order) {
      const int64_t k = spatial_of_[At(at)];
      if (k >= 0 && sees) summed_.push_back({Role::kWindow, k});
      if (at == d_.input_feature) summed_.push_back({Role::kInput});
    }
    return x;
  }

  Instruction* PartsOfRhs() {
    Instruction* w = i_->operand(1);
    const Shape shape = w->shape();
    if (!reversed_.empty()) w = b_.Add(Opcode::kReverse, {w}, {{Attr::kDimensions, reversed_}});
    std::vector<Dimension> dims;
    auto add = [&](Role role, int64_t size) {
      w_roles_.push_back(role);
      dims.emplace_back(size);
    };
    for (int64_t at = 0; at < d_.rank(); ++at) {
      const int64_t size = shape.dim(at);
      if (at == d_.kernel_output_feature) {
        out_features_ = size / groups_;
        if (groups_ > 1) add({Role::kGroup}, groups_);
        add({Role::kOutput}, out_features_);
      } else if (at == d_.kernel_input_feature) {
        add({Role::kInput}, size);
      } else {
        const auto k = std::ranges::find(d_.kernel_spatial, at) - d_.kernel_spatial.begin();
        Role role{Role::kWindow, k};
        if (std::ranges::find(summed_, role) != summed_.end()) add(role, size);
      }
    }
    return b_.Reshape(w, std::move(dims));
  }

  // The result's dimensions, with the feature's split into group and feature.
  Roles ResultRoles() const {
    Roles roles;
    for (int64_t at = 0; at < d_.rank(); ++at) {
      if (at == d_.output_batch) {
        roles.push_back({Role::kBatch});
      } else if (at == d_.output_feature) {
        if (groups_ > 1) roles.push_back({Role::kGroup});
        roles.push_back({Role::kOutput});
      } else {
        const auto k = std::ranges::find(d_.output_spatial, at) - d_.output_spatial.begin();
        roles.push_back({Role::kPlace, k});
      }
    }
    return roles;
  }

  Instruction* Finish(Instruction* result) {
    result = b_.Convert(result, i_->shape().type());
    return b_.Reshape(result, i_->shape().dimensions());
  }

  Instruction* Product(Instruction* x, Instruction* w) {
    const ElementType type = x->shape().type();
    w = b_.Convert(w, type);
    Attributes attributes = {
        {Attr::kLhsContractingDims, NumbersOf(summed_, x_roles_)},
        {Attr::kRhsContractingDims, NumbersOf(summed_, w_roles_)},
    };
    Roles made;
    if (groups_ > 1) {
      made.push_back({Role::kGroup});
      attributes.Set(Attr::kLhsBatchDims, NumbersOf(made, x_roles_));
      attributes.Set(Attr::kRhsBatchDims, NumbersOf(made, w_roles_));
    }
    for (const Role& role : x_roles_) {
      if (role.kind == Role::kBatch || role.kind == Role::kPlace) made.push_back(role);
    }
    made.push_back({Role::kOutput});
    // The sum of widened factors is at least as wide.
    ElementType sum = i_->shape().type();
    if (IsNarrow(sum) && type != i_->operand(0)->shape().type()) sum = WideType(sum);
    // The bits of integers do not depend on the sign.
    if (IsInteger(sum) && IsSigned(type) && !IsSigned(sum)) {
      sum = BitWidth(sum) == 64 ? ElementType::kS64 : ElementType::kS32;
    }
    Instruction* dot = b_.Add(Opcode::kDot, {x, w}, std::move(attributes), Shape::Scalar(sum));
    Ints order = NumbersOf(ResultRoles(), made);
    if (!std::ranges::is_sorted(order)) {
      dot = b_.Add(Opcode::kTranspose, {dot}, {{Attr::kDimensions, std::move(order)}});
    }
    return Finish(dot);
  }

  // A product of floats that is no part of a fused multiply-add.
  Instruction* Rounded(Instruction* product) {
    const FloatFormat format = *FormatOf(product->shape().type());
    return b_.Add(Opcode::kReducePrecision, {product},
                  {{Attr::kExponentBits, int64_t{format.exponent}},
                   {Attr::kMantissaBits, int64_t{format.mantissa}}});
  }

  // reduce(x * w, +) over a window and the input features.
  Instruction* SumOfProducts(Instruction* x, Instruction* w) {
    const ElementType type = WideType(i_->shape().type());
    Roles all = ResultRoles();
    const auto kept = static_cast<int64_t>(all.size());
    all.insert(all.end(), summed_.begin(), summed_.end());
    std::vector<Dimension> dims;
    for (const Role& role : all) {
      const bool of_x = std::ranges::find(x_roles_, role) != x_roles_.end();
      const Instruction* from = of_x ? x : w;
      dims.push_back(from->shape().dimension(NumbersOf({role}, of_x ? x_roles_ : w_roles_)[0]));
    }
    auto spread = [&](Instruction* part, const Roles& roles) {
      return b_.Add(Opcode::kBroadcast, {b_.Convert(part, type)},
                    {{Attr::kDimensions, NumbersOf(roles, all)}}, Shape(type, dims));
    };
    Instruction* product = b_.Times(spread(x, x_roles_), spread(w, w_roles_));
    if (rounds_ && IsFloat(type)) product = Rounded(product);
    Ints summed(summed_.size());
    std::iota(summed.begin(), summed.end(), kept);
    return Finish(b_.Sum(product, std::move(summed)));
  }

  static Ints MajorToMinor(const Shape& shape) {
    Ints order(At(shape.rank()));
    std::iota(order.begin(), order.end(), 0);
    std::vector<int64_t> strides = shape.strides();
    std::ranges::stable_sort(order, std::greater<>(), [&](int64_t d) { return strides[At(d)]; });
    return order;
  }

  Instruction* i_;
  Builder& b_;
  const ConvolutionDimensions& d_;
  const int64_t feature_groups_, batch_groups_, groups_;
  std::vector<int64_t> spatial_of_;  // by lhs's dimension: the window's, or -1
  std::vector<PaddingDimension> padding_;
  std::vector<WindowDimension> view_;
  bool pads_ = false, in_place_ = true, rounds_ = false;
  Ints reversed_;  // of rhs
  Roles x_roles_, w_roles_, summed_;
  int64_t out_features_ = 0;  // of a group
};

Result<Instruction*> AsSumsOfProducts(Builder& b, Instruction* i) {
  return ConvolutionByChannels(
      b, i, [](Builder& b, Instruction* i) { return SumsOfProducts(b, i).Run(); });
}

}  // namespace

// convolution(x, w) => convert(convolution(convert(x), convert(w)))   of small floats, which bf16
// holds, but for powers of two without end: these f32 holds
Result<Instruction*> Convolution(Builder& b, Instruction* i) {
  const ElementType type = i->operand(0)->shape().type();
  if (!IsFloat(type) || WideOf(type) == type) return ConvolutionByPhases(b, i, AsSumsOfProducts);
  const ElementType wide = type == ElementType::kF8E8M0FNU ? ElementType::kF32 : ElementType::kBF16;
  const ElementType sum =
      i->shape().type() == ElementType::kF64 ? ElementType::kF64 : ElementType::kF32;
  std::vector<Instruction*> operands;
  for (Instruction* operand : i->operands()) {
    operands.push_back(InLayout(b.Convert(operand, wide), *operand));
  }
  Instruction* convolution = InLayout(
      b.Add(Opcode::kConvolution, std::move(operands), i->attributes(), Shape::Scalar(sum)), *i);
  KILN_ASSIGN_OR_RETURN(Instruction * result,
                        ConvolutionByPhases(b, convolution, AsSumsOfProducts));
  b.computation()->Remove(convolution);
  return InLayout(b.Convert(result, i->shape().type()), *i);
}

}  // namespace kiln::passes::expand

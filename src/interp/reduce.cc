#include "interp/reduce.h"

#include <algorithm>

#include "base/strings.h"
#include "interp/complex.h"
#include "interp/narrow.h"
#include "interp/reducer.h"
#include "interp/scalar.h"
#include "interp/strided.h"
#include "interp/sums.h"
#include "interp/window_positions.h"
#include "ir/reducer.h"

namespace kiln::interp {
namespace {

using ir::Instruction;

// The offset of each result's first element, and the relative offsets of its group.
struct Groups {
  std::vector<int64_t> kept, reduced;

  int64_t count() const { return static_cast<int64_t>(kept.size()); }
  // The largest number of elements of a result.
  int64_t most() const { return static_cast<int64_t>(reduced.size()); }
  // Calls f with the offset of every element of a result, in row-major order, until it fails.
  template <typename F>
  Status ForEach(int64_t result, F&& f) const {
    int64_t base = kept[static_cast<size_t>(result)];
    for (int64_t at : reduced) KILN_RETURN_IF_ERROR(f(base + at));
    return OkStatus();
  }
};

// The same for a window that moves over an array.
class Windows {
 public:
  Windows(const Shape& operand, const Shape& result, const std::vector<WindowDimension>& window)
      : dims_(operand.dims()),
        strides_(RowMajorStrides(dims_)),
        places_(result.dims()),
        window_(window) {}

  int64_t count() const { return Product(places_); }
  int64_t most() const {
    int64_t most = 1;
    for (size_t d = 0; d < dims_.size(); ++d) most *= std::min(window_[d].size, dims_[d]);
    return most;
  }

  template <typename F>
  Status ForEach(int64_t result, F&& f) const {
    // The offsets along each dimension of elements that are neither padding nor holes.
    std::vector<std::vector<int64_t>> inside(dims_.size());
    std::vector<int64_t> sizes(dims_.size());
    for (size_t d = dims_.size(); d-- > 0;) {
      const WindowDimension& w = window_[d];
      int64_t place = result % places_[d];
      result /= places_[d];
      for (int64_t at : PositionsSeen(w, dims_[d], place)) inside[d].push_back(at * strides_[d]);
      sizes[d] = static_cast<int64_t>(inside[d].size());
    }
    if (Product(sizes) == 0) return OkStatus();
    std::vector<int64_t> index(sizes.size());
    do {
      int64_t offset = 0;
      for (size_t d = 0; d < sizes.size(); ++d) offset += inside[d][static_cast<size_t>(index[d])];
      KILN_RETURN_IF_ERROR(f(offset));
    } while (NextIndex(sizes, index));
    return OkStatus();
  }

 private:
  std::vector<int64_t> dims_, strides_, places_;
  const std::vector<WindowDimension>& window_;
};

Groups GroupsOf(const Shape& shape, const Ints& dimensions) {
  std::vector<int64_t> strides = RowMajorStrides(shape.dims());
  std::vector<int64_t> kept_dims, kept_strides, reduced_dims, reduced_strides;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    bool reduced = std::find(dimensions.begin(), dimensions.end(), d) != dimensions.end();
    (reduced ? reduced_dims : kept_dims).push_back(shape.dim(d));
    (reduced ? reduced_strides : kept_strides).push_back(strides[d]);
  }
  return {OffsetsOf(kept_dims, kept_strides), OffsetsOf(reduced_dims, reduced_strides)};
}

// Whether the computation is the sum, or the product, of its two parameters.
bool IsRounding(const ir::Computation& c) {
  const std::optional<Opcode> opcode = ir::ReducerOf(c);
  return opcode == Opcode::kAdd || opcode == Opcode::kMultiply;
}

// A sum of floats or complex numbers in the type of `out`.
template <typename To, typename From, typename G>
void FoldSum(const Literal& x, const Literal& init, const G& groups, Literal& out) {
  using Compute = typename Sum<To>::Compute;
  const From* values = x.values<From>().data();
  To* next = out.values<To>().data();
  for (int64_t r = 0; r < groups.count(); ++r) {
    Sum<To> sum(static_cast<Compute>(init.values<From>()[0]));
    auto add = [&](int64_t at) {
      sum.Add(static_cast<Compute>(values[at]));
      return OkStatus();
    };
    if (Status status = groups.ForEach(r, add); status.ok()) *next++ = sum.Rounded();
  }
}

// A product in a wider type, rounded once to that of `out`.
template <typename To, typename From, typename G>
void FoldProduct(const Literal& x, const Literal& init, const G& groups, Literal& out) {
  using Wide = typename SumTypes<To>::Wide;
  const From* values = x.values<From>().data();
  To* next = out.values<To>().data();
  for (int64_t r = 0; r < groups.count(); ++r) {
    Wide result = static_cast<Wide>(init.values<From>()[0]);
    auto multiply = [&](int64_t at) {
      result = Times(result, static_cast<Wide>(values[at]));
      return OkStatus();
    };
    if (Status status = groups.ForEach(r, multiply); status.ok()) *next++ = RoundTo<To>(result);
  }
}

template <typename To, typename From, typename G>
void FoldFloats(Opcode opcode, const Literal& x, const Literal& init, const G& groups,
                Literal& out) {
  if (opcode == Opcode::kAdd) {
    FoldSum<To, From>(x, init, groups, out);
  } else {
    FoldProduct<To, From>(x, init, groups, out);
  }
}

template <typename G>
Literal FoldedFloats(Opcode opcode, const Literal& x, const Literal& init, const G& groups,
                     const Shape& shape) {
  if (IsNarrow(shape.type())) {
    // Through doubles, for sums of f32.
    Shape wide = shape;
    wide.set_type(ElementType::kF64);
    Literal doubles(wide);
    FoldFloats<double, float>(opcode, Widened(x), Widened(init), groups, doubles);
    return Rounded(shape.type(), doubles);
  }
  Literal out(shape);
  if (shape.type() == ElementType::kC64) {
    using T = std::complex<float>;
    FoldFloats<T, T>(opcode, x, init, groups, out);
  } else if (shape.type() == ElementType::kC128) {
    using T = std::complex<double>;
    FoldFloats<T, T>(opcode, x, init, groups, out);
  } else {
    VisitKernelType(shape.type(), [&](auto zero) {
      using T = decltype(zero);
      if constexpr (FloatType<T>) FoldFloats<T, T>(opcode, x, init, groups, out);
    });
  }
  return out;
}

// The literal definition: a left fold in row-major order, from the init values.
template <typename G>
class Fold {
 public:
  Fold(const Instruction& i, std::span<const Literal* const> operands, const G& groups,
       const RegionContext& context)
      : instruction_(i), operands_(operands), groups_(groups), context_(context) {
    for (size_t k = 0; k < operands.size() / 2; ++k) {
      results_.emplace_back(i.shape().is_tuple() ? i.shape().elements()[k] : i.shape());
    }
  }

  Status Run() {
    std::optional<Reducer> reducer = Reducer::Make(*instruction_.called(0));
    for (int64_t next = 0; next < groups_.count(); ++next) {
      KILN_RETURN_IF_ERROR(reducer ? RunFast(*reducer, next) : RunCalls(next));
    }
    return OkStatus();
  }
  std::vector<Literal> TakeResults() { return std::move(results_); }

 private:
  size_t count() const { return results_.size(); }
  size_t width(size_t k) const {
    return static_cast<size_t>(ByteWidth(operands_[k]->shape().type()));
  }
  const std::byte* Element(size_t k, int64_t offset) const {
    return operands_[k]->data() + static_cast<size_t>(offset) * width(k);
  }

  Status RunFast(Reducer& reducer, int64_t next) {
    int64_t cost = 0;
    if (__builtin_mul_overflow(groups_.most(), reducer.instruction_count(), &cost))
      cost = INT64_MAX;
    KILN_RETURN_IF_ERROR(context_.charge(cost));
    std::vector<ScalarSlot> state(count());
    for (size_t k = 0; k < count(); ++k) {
      std::memcpy(state[k].bytes, operands_[count() + k]->data(), width(k));
    }
    KILN_RETURN_IF_ERROR(groups_.ForEach(next, [&](int64_t at) {
      for (size_t k = 0; k < count(); ++k) {
        std::memcpy(reducer.parameter(k), state[k].bytes, width(k));
        std::memcpy(reducer.parameter(count() + k), Element(k, at), width(k));
      }
      KILN_RETURN_IF_ERROR(reducer.Apply());
      for (size_t k = 0; k < count(); ++k) {
        std::memcpy(state[k].bytes, reducer.result(k), width(k));
      }
      return OkStatus();
    }));
    for (size_t k = 0; k < count(); ++k) Put(k, next, state[k].bytes);
    return OkStatus();
  }

  void Put(size_t k, int64_t next, const void* value) {
    std::memcpy(results_[k].data() + static_cast<size_t>(next) * width(k), value, width(k));
  }

  Status RunCalls(int64_t next) {
    std::vector<Literal> state;
    for (size_t k = 0; k < count(); ++k) state.push_back(*operands_[count() + k]);
    KILN_RETURN_IF_ERROR(groups_.ForEach(next, [&](int64_t at) {
      for (size_t k = 0; k < count(); ++k) {
        state.emplace_back(Shape::Scalar(operands_[k]->shape().type()));
        std::memcpy(state.back().data(), Element(k, at), width(k));
      }
      KILN_ASSIGN_OR_RETURN(state, context_.call(*instruction_.called(0), std::move(state)));
      return OkStatus();
    }));
    for (size_t k = 0; k < count(); ++k) Put(k, next, state[k].data());
    return OkStatus();
  }

  const Instruction& instruction_;
  std::span<const Literal* const> operands_;
  const G& groups_;
  const RegionContext& context_;
  std::vector<Literal> results_;
};

template <typename G>
Result<Literal> Folded(const Instruction& i, std::span<const Literal* const> operands,
                       const RegionContext& context, const G& groups) {
  if (i.shape().is_array() && IsRounding(*i.called(0)) &&
      (IsFloat(i.shape().type()) || IsComplex(i.shape().type()))) {
    return FoldedFloats(i.called(0)->root()->opcode(), *operands[0], *operands[1], groups,
                        i.shape());
  }
  Fold fold(i, operands, groups, context);
  KILN_RETURN_IF_ERROR(fold.Run());
  std::vector<Literal> results = fold.TakeResults();
  if (i.shape().is_array()) return std::move(results[0]);
  return Literal::Tuple(std::move(results));
}

}  // namespace

Result<Literal> EvaluateReduce(const Instruction& i, std::span<const Literal* const> operands,
                               const RegionContext& context) {
  const Shape& operand = operands[0]->shape();
  if (i.opcode() == Opcode::kReduceWindow) {
    const Shape& result = i.shape().is_array() ? i.shape() : i.shape().elements()[0];
    Windows windows(operand, result, i.attributes().Window(Attr::kWindow));
    return Folded(i, operands, context, windows);
  }
  return Folded(i, operands, context, GroupsOf(operand, i.dimensions()));
}

}  // namespace kiln::interp

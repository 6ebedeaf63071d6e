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

// The offset of each result's first element, and its group: rows, by their relative offsets, of
// elements with equal distances.
struct Groups {
  std::vector<int64_t> kept, rows;
  int64_t row_size = 1, step = 0;

  int64_t count() const { return static_cast<int64_t>(kept.size()); }
  // The largest number of elements of a result.
  int64_t most() const { return static_cast<int64_t>(rows.size()) * row_size; }
  // Calls f with the offset of every element of a result, in row-major order, until it fails.
  template <typename F>
  Status ForEach(int64_t result, F&& f) const {
    int64_t base = kept[static_cast<size_t>(result)];
    for (int64_t row : rows) {
      for (int64_t k = 0; k < row_size; ++k) KILN_RETURN_IF_ERROR(f(base + row + k * step));
    }
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
        steps_(RowMajorStrides(places_)),
        window_(window),
        kept_(dims_.size()) {
    for (size_t d = 0; d < dims_.size(); ++d) {
      int64_t most = 0;
      if (__builtin_mul_overflow(places_[d], std::min(window_[d].size, dims_[d]), &most) ||
          most > kMostKept) {
        continue;
      }
      for (int64_t place = 0; place < places_[d]; ++place) {
        kept_[d].push_back(PositionsSeen(window_[d], dims_[d], place));
      }
    }
  }

  int64_t count() const { return Product(places_); }
  int64_t most() const {
    int64_t most = 1;
    for (size_t d = 0; d < dims_.size(); ++d) most *= std::min(window_[d].size, dims_[d]);
    return most;
  }

  template <typename F>
  Status ForEach(int64_t result, F&& f) const {
    return Walk(0, result, 0, f);
  }

 private:
  static constexpr int64_t kMostKept = 1 << 20;

  // Of the elements at `base` along the first d dimensions, without padding and holes. `result` is
  // the place along the others.
  template <typename F>
  Status Walk(size_t d, int64_t result, int64_t base, F& f) const {
    if (d == dims_.size()) return f(base);
    const int64_t place = result / steps_[d], rest = result % steps_[d];
    auto walk = [&](const std::vector<int64_t>& positions) {
      for (int64_t at : positions) {
        KILN_RETURN_IF_ERROR(Walk(d + 1, rest, base + at * strides_[d], f));
      }
      return OkStatus();
    };
    if (kept_[d].empty()) return walk(PositionsSeen(window_[d], dims_[d], place));
    return walk(kept_[d][static_cast<size_t>(place)]);
  }

  std::vector<int64_t> dims_, strides_, places_, steps_;
  const std::vector<WindowDimension>& window_;
  // The positions that are seen at each place, along dimensions that have few of them.
  std::vector<std::vector<std::vector<int64_t>>> kept_;
};

Groups GroupsOf(const Shape& shape, const Ints& dimensions) {
  std::vector<int64_t> strides = RowMajorStrides(shape.dims());
  std::vector<int64_t> kept_dims, kept_strides, reduced_dims, reduced_strides;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (std::find(dimensions.begin(), dimensions.end(), d) == dimensions.end()) {
      kept_dims.push_back(shape.dim(d));
      kept_strides.push_back(strides[d]);
    } else if (!reduced_dims.empty() && reduced_strides.back() == shape.dim(d) * strides[d]) {
      // Two dimensions that are one in memory.
      reduced_dims.back() *= shape.dim(d);
      reduced_strides.back() = strides[d];
    } else {
      reduced_dims.push_back(shape.dim(d));
      reduced_strides.push_back(strides[d]);
    }
  }
  Groups groups{.kept = OffsetsOf(kept_dims, kept_strides)};
  if (!reduced_dims.empty()) {
    groups.row_size = reduced_dims.back();
    groups.step = reduced_strides.back();
    reduced_dims.pop_back();
    reduced_strides.pop_back();
  }
  groups.rows = OffsetsOf(reduced_dims, reduced_strides);
  return groups;
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

// The largest or the smallest element, of a kernel's type.
template <typename G>
Literal Extremum(Opcode opcode, const Literal& x, const Literal& init, const G& groups,
                 const Shape& shape) {
  Literal out(shape);
  VisitKernelType(shape.type(), [&](auto zero) {
    using T = decltype(zero);
    using Compute = ComputeType<T>;
    const T* values = x.values<T>().data();
    T* next = out.values<T>().data();
    for (int64_t r = 0; r < groups.count(); ++r) {
      auto result = static_cast<Compute>(init.values<T>()[0]);
      auto add = [&](int64_t at) {
        const auto value = static_cast<Compute>(values[at]);
        result = opcode == Opcode::kMaximum ? Maximum(result, value) : Minimum(result, value);
        return OkStatus();
      };
      if (!groups.ForEach(r, add).ok()) return;
      if constexpr (FloatType<T>) {
        *next++ = RoundTo<T>(result);
      } else {
        *next++ = result;
      }
    }
  });
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
  const Shape& shape = i.shape();
  const std::optional<Opcode> opcode =
      shape.is_array() ? ir::ReducerOf(*i.called(0)) : std::nullopt;
  const bool rounds = opcode == Opcode::kAdd || opcode == Opcode::kMultiply;
  if (rounds && (IsFloat(shape.type()) || IsComplex(shape.type()))) {
    return FoldedFloats(*opcode, *operands[0], *operands[1], groups, shape);
  }
  const bool selects = opcode == Opcode::kMaximum || opcode == Opcode::kMinimum;
  if (selects && IsKernelType(shape.type())) {
    return Extremum(*opcode, *operands[0], *operands[1], groups, shape);
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

#include "interp/reduce.h"

#include <algorithm>

#include "base/strings.h"
#include "interp/reducer.h"
#include "interp/scalar.h"
#include "interp/strided.h"

namespace kiln::interp {
namespace {

using ir::Instruction;

// Where each result's elements begin, and how far from there each element of its group lies.
struct Groups {
  std::vector<int64_t> kept, reduced;
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
  const Instruction* root = c.root();
  return (root->opcode() == Opcode::kAdd || root->opcode() == Opcode::kMultiply) &&
         c.parameters().size() == 2 && root->operand(0)->opcode() == Opcode::kParameter &&
         root->operand(1)->opcode() == Opcode::kParameter && root->operand(0) != root->operand(1);
}

// A sum or product of floats in double (of f64 in long double, where that is wider), rounded once.
template <FloatType T>
void FoldWide(Opcode opcode, const Literal& x, const Literal& init, const Groups& groups,
              Literal& out) {
  using W = Wider<T>;
  const T* values = x.values<T>().data();
  T* next = out.values<T>().data();
  for (int64_t base : groups.kept) {
    W result = static_cast<W>(init.values<T>()[0]);
    if (opcode == Opcode::kAdd) {
      for (int64_t at : groups.reduced) result += static_cast<W>(values[base + at]);
    } else {
      for (int64_t at : groups.reduced) result *= static_cast<W>(values[base + at]);
    }
    *next++ = RoundTo<T>(result);
  }
}

// The computation by the letter: a fold from the left in row-major order, from the init values.
class Fold {
 public:
  Fold(const Instruction& i, std::span<const Literal* const> operands, const Groups& groups,
       const RegionContext& context)
      : instruction_(i), operands_(operands), groups_(groups), context_(context) {
    for (size_t k = 0; k < operands.size() / 2; ++k) {
      results_.emplace_back(i.shape().is_tuple() ? i.shape().elements()[k] : i.shape());
    }
  }

  Status Run() {
    std::optional<Reducer> reducer = Reducer::Make(*instruction_.called(0));
    for (size_t next = 0; next < groups_.kept.size(); ++next) {
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

  Status RunFast(Reducer& reducer, size_t next) {
    int64_t steps = static_cast<int64_t>(groups_.reduced.size());
    int64_t cost = 0;
    if (__builtin_mul_overflow(steps, reducer.instruction_count(), &cost)) cost = INT64_MAX;
    KILN_RETURN_IF_ERROR(context_.charge(cost));
    std::vector<uint64_t> state(count());
    for (size_t k = 0; k < count(); ++k) {
      std::memcpy(&state[k], operands_[count() + k]->data(), width(k));
    }
    for (int64_t at : groups_.reduced) {
      for (size_t k = 0; k < count(); ++k) {
        std::memcpy(reducer.parameter(k), &state[k], width(k));
        std::memcpy(reducer.parameter(count() + k), Element(k, groups_.kept[next] + at), width(k));
      }
      KILN_RETURN_IF_ERROR(reducer.Apply());
      for (size_t k = 0; k < count(); ++k) std::memcpy(&state[k], reducer.result(k), width(k));
    }
    for (size_t k = 0; k < count(); ++k) {
      std::memcpy(results_[k].data() + next * width(k), &state[k], width(k));
    }
    return OkStatus();
  }

  Status RunCalls(size_t next) {
    std::vector<Literal> state;
    for (size_t k = 0; k < count(); ++k) state.push_back(*operands_[count() + k]);
    for (int64_t at : groups_.reduced) {
      for (size_t k = 0; k < count(); ++k) {
        state.emplace_back(Shape::Scalar(operands_[k]->shape().type()));
        std::memcpy(state.back().data(), Element(k, groups_.kept[next] + at), width(k));
      }
      KILN_ASSIGN_OR_RETURN(state, context_.call(*instruction_.called(0), std::move(state)));
    }
    for (size_t k = 0; k < count(); ++k) {
      std::memcpy(results_[k].data() + next * width(k), state[k].data(), width(k));
    }
    return OkStatus();
  }

  const Instruction& instruction_;
  std::span<const Literal* const> operands_;
  const Groups& groups_;
  const RegionContext& context_;
  std::vector<Literal> results_;
};

}  // namespace

Result<Literal> EvaluateReduce(const Instruction& i, std::span<const Literal* const> operands,
                               const RegionContext& context) {
  Groups groups = GroupsOf(operands[0]->shape(), i.dimensions());
  if (i.shape().is_array() && IsFloat(i.shape().type()) && IsRounding(*i.called(0))) {
    Literal out(i.shape());
    Opcode opcode = i.called(0)->root()->opcode();
    VisitType(i.shape().type(), [&](auto zero) {
      using T = decltype(zero);
      if constexpr (FloatType<T>) FoldWide<T>(opcode, *operands[0], *operands[1], groups, out);
    });
    return out;
  }
  Fold fold(i, operands, groups, context);
  KILN_RETURN_IF_ERROR(fold.Run());
  std::vector<Literal> results = fold.TakeResults();
  if (i.shape().is_array()) return std::move(results[0]);
  return Literal::Tuple(std::move(results));
}

}  // namespace kiln::interp

// Slices at computed places. x are operands of scatters, u their updates, i the indices, t the
// cotangent; gather(x) and scatter(x, u) are those of the op's indices.
#include <algorithm>

#include "grad/apply.h"
#include "grad/rules.h"
#include "grad/scatter_loop.h"
#include "grad/slices.h"
#include "grad/sort.h"
#include "ir/reducer.h"

namespace kiln::grad {

using ir::Computation;
using ir::Instruction;

namespace {

// Whether a gather takes elements along one dimension by their positions after a sort or a topk, so
// that it takes none twice.
bool TakesSorted(const Instruction* gather) {
  const Attributes& attributes = gather->attributes();
  const Ints& along = attributes.IntsOf(Attr::kStartIndexMap);
  const Instruction *x = gather->operand(0), *positions = gather->operand(1);
  if (positions->opcode() != Opcode::kGetTupleElement || along.size() != 1) return false;
  if (attributes.IntsOf(Attr::kOperandBatchingDims) !=
          attributes.IntsOf(Attr::kStartIndicesBatchingDims) ||
      std::ssize(attributes.IntsOf(Attr::kOperandBatchingDims)) != x->shape().rank() - 1) {
    return false;
  }
  const Instruction* sort = positions->operand(0);
  const int64_t k = positions->attributes().Int(Attr::kIndex);
  if (!x->shape().SameDimensions(sort->operand(0)->shape())) return false;
  if (sort->opcode() == Opcode::kTopK) return k == 1 && along[0] == x->shape().rank() - 1;
  return sort->opcode() == Opcode::kSort && along == sort->dimensions() &&
         CountsAlong(sort->operand(k), along[0]);
}

}  // namespace

// gather(x): scatter(0, t, +), at the clamped indices
template <>
bool Transpose<Opcode::kGather>(Reverse& reverse, Instruction* op, const Derivative& cotangent) {
  Builder& b = reverse.builder();
  const Slices slices(op);
  Instruction* x = op->operand(0);
  const bool sorted = TakesSorted(op);
  Instruction* indices = sorted ? op->operand(1) : slices.ClampedIndices(b);
  Instruction* sum = slices.AddTo(b, b.Zeros(x), indices, cotangent.array);
  if (sorted) sum->mutable_attributes().Set(Attr::kUniqueIndices, true);
  reverse.Add(x, sum);
  return true;
}

namespace {

// What a scatter of one operand does with an element x and an update u.
enum class Combiner : uint8_t {
  kAdd,
  kSubtract,  // x - u
  kReplace,   // u
  kKeep,      // x
  kMultiply,
  kMaximum,
  kMinimum,
  kOther,
};

Combiner CombinerOf(const Instruction* scatter) {
  const Computation& f = *scatter->called(0);
  const Instruction* root = f.root();
  if (scatter->operand_count() != 3) return Combiner::kOther;
  if (root == f.parameter(1)) return Combiner::kReplace;
  if (root == f.parameter(0)) return Combiner::kKeep;
  if (root->opcode() == Opcode::kSubtract && root->operand(0) == f.parameter(0) &&
      root->operand(1) == f.parameter(1)) {
    return Combiner::kSubtract;
  }
  switch (ir::ReducerOf(f).value_or(Opcode::kParameter)) {
    case Opcode::kAdd:
      return Combiner::kAdd;
    case Opcode::kMultiply:
      return Combiner::kMultiply;
    case Opcode::kMaximum:
      return Combiner::kMaximum;
    case Opcode::kMinimum:
      return Combiner::kMinimum;
    default:
      return Combiner::kOther;
  }
}

// The number of each update's index vector, from 1 on, in the dimensions of the updates. Later ones
// have greater numbers.
Instruction* Numbers(Builder& b, const Slices& slices, Instruction* updates) {
  const Shape& shape = updates->shape();
  const Ints outside = slices.Outside();
  double count = 1;
  for (int64_t d : outside) count *= static_cast<double>(shape.dim(d));
  const ElementType type = count < INT32_MAX ? ElementType::kS32 : ElementType::kS64;
  Instruction* numbers = b.BroadcastLike(updates, b.Scalar(type, 0), {});
  for (int64_t d : outside) {
    Instruction* size = b.BroadcastLike(updates, b.Convert(b.SizeOf(updates, d), type), {});
    numbers = b.Plus(b.Times(numbers, size), b.IotaLike(updates, type, d));
  }
  return b.Plus(numbers, b.Number(numbers, 1));
}

// Equal shares of the operand's element and the updates that are the result:
//   scatter(x p, u q, +) / scatter(p, q, +)   where p = (x == f), q = (u == gather(f))
Instruction* Extremum(Builder& b, Instruction* f) {
  const Slices slices(f);
  Instruction *x = f->operand(0), *u = f->operand(2);
  Instruction* p = b.Compare(Direction::kEq, x, f);
  Instruction* q = b.Compare(Direction::kEq, u, slices.Gather(b, f));
  const auto sum = [&](Instruction* of_x, Instruction* of_u) {
    return slices.AddTo(b, b.Masked(p, of_x), slices.indices(), b.Masked(q, of_u));
  };
  return b.Over(sum(x, u), sum(b.Number(x, 1), b.Number(u, 1)));
}

// Several operands as scatters of one; null if the computation mixes them.
Instruction* OneByOne(Builder& b, Instruction* op) {
  const auto n = static_cast<size_t>(op->operand_count() / 2);
  std::vector<Instruction*> results;
  for (size_t k = 0; k < n; ++k) {
    Instruction *x = op->operand(static_cast<int64_t>(k)),
                *u = op->operand(static_cast<int64_t>(n + 1 + k));
    Combination own(b, op->called(0)->name(), {{x->shape().type()}});
    std::vector<Instruction*> arguments(2 * n);
    arguments[k] = own.accumulated[0];
    arguments[n + k] = own.next[0];
    Instruction* result = Apply(own.b, *op->called(0), arguments)[k];
    own.computation->set_root(result ? result : own.next[0]);
    if (!result || !own.b.ok()) return nullptr;
    results.push_back(b.Add(Opcode::kScatter, {x, op->operand(static_cast<int64_t>(n)), u},
                            op->attributes(), std::nullopt, {own.computation}));
  }
  return b.Tuple(std::move(results));
}

// scatter(x, u, -) = scatter(x, -u, +), scatter(x, u, *) = x scatter(1, u) of updates that do not
// collide, and maxima and minima by what was chosen.
Instruction* Expanded(Builder& b, Instruction* op) {
  if (op->operand_count() > 3) {
    if (Instruction* scatters = OneByOne(b, op)) return scatters;
    return ScatterLoop(b, op);
  }
  Instruction *x = op->operand(0), *u = op->operand(2);
  switch (CombinerOf(op)) {
    case Combiner::kKeep:
      return x;
    case Combiner::kSubtract:
      return Slices(op).AddTo(b, x, op->operand(1), b.Negate(u));
    case Combiner::kMaximum:
    case Combiner::kMinimum:
      return Extremum(b, op);
    case Combiner::kMultiply:
      if (!op->attributes().Bool(Attr::kUniqueIndices)) break;
      return b.Times(x, Slices(op).PutInto(b, b.Number(x, 1), u));
    default:
      break;
  }
  return ScatterLoop(b, op);
}

bool IsLinear(Combiner combiner) {
  return combiner == Combiner::kAdd || combiner == Combiner::kReplace;
}

}  // namespace

// scatter(x, u, +): t to x, and gather(t) to u, but 0 to updates outside of x.
// scatter(x, u), the last of those that collide: x has scatter(t, 0), and u has gather(t) where
// gather(scatter(0, n)) is n, the number of the update.
template <>
bool Transpose<Opcode::kScatter>(Reverse& reverse, Instruction* op, const Derivative& cotangent) {
  Builder& b = reverse.builder();
  const Combiner combiner = CombinerOf(op);
  if (!IsLinear(combiner)) {
    reverse.HandOnExpanded(op, cotangent, Expanded);
    return true;
  }
  const Slices slices(op);
  Instruction *x = op->operand(0), *u = op->operand(2), *t = cotangent.array;
  const bool replaces = combiner == Combiner::kReplace;
  if (reverse.IsActive(x)) {
    reverse.Add(x, replaces ? slices.PutInto(b, t, b.Zeros(u)) : t);
  }
  if (!reverse.IsActive(u)) return true;
  Instruction* there = nullptr;
  if (replaces && !op->attributes().Bool(Attr::kUniqueIndices)) {
    Instruction* numbers = Numbers(b, slices, u);
    Instruction* none = b.BroadcastLike(x, b.Scalar(numbers->shape().type(), 0), {});
    there = b.Compare(Direction::kEq, slices.Gather(b, slices.PutInto(b, none, numbers)), numbers);
  } else {
    there = slices.Inside(b, u);
  }
  Instruction* own = slices.Gather(b, t);
  reverse.Add(u, there ? b.Masked(there, own) : own);
  return true;
}

template <>
Derivative Tangent<Opcode::kScatter>(Forward& forward, Instruction* op) {
  return IsLinear(CombinerOf(op)) ? forward.OfLinear(op) : forward.TangentOfExpanded(op, Expanded);
}

}  // namespace kiln::grad

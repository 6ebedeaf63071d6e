// Reductions and maps. x are the operands, f is the result, t the cotangent.
#include <algorithm>

#include "grad/apply.h"
#include "grad/rules.h"
#include "ir/reducer.h"
#include "ops/other_dimensions.h"

namespace kiln::grad {

using ir::Instruction;

namespace {

// The op that a reduction of one operand folds by, if it is one.
// The dimensions that the result has.
Ints Kept(const Instruction* reduce) {
  return OtherDimensions(reduce->operand(0)->shape().rank(), reduce->dimensions());
}

// A fold of arrays along a dimension, which stays with a size of 1, by halves: the number of steps
// is the logarithm of the size.
class Halves {
 public:
  Halves(Builder& b, const ir::Computation& function)
      : b_(b), function_(function), commutes_(ir::ReducerOf(function).has_value()) {}

  std::vector<Instruction*> Fold(std::vector<Instruction*> x, int64_t d) const {
    // Odd ones out, the last first.
    std::vector<std::vector<Instruction*>> rest;
    for (int64_t size = x[0]->shape().dim(d); size > 1; size /= 2) {
      const int64_t half = size / 2;
      if (size % 2 == 1) rest.push_back(Cut(x, d, {size - 1, size, 1}));
      // Neighbours, in order, if the function depends on it.
      x = commutes_ ? Both(Cut(x, d, {0, half, 1}), Cut(x, d, {half, 2 * half, 1}))
                    : Both(Cut(x, d, {0, 2 * half, 2}), Cut(x, d, {1, 2 * half, 2}));
    }
    for (const auto& one : std::ranges::reverse_view(rest)) x = Both(std::move(x), one);
    return x;
  }

  std::vector<Instruction*> Both(std::vector<Instruction*> x,
                                 const std::vector<Instruction*>& y) const {
    x.insert(x.end(), y.begin(), y.end());
    return Apply(b_, function_, x);
  }

 private:
  std::vector<Instruction*> Cut(const std::vector<Instruction*>& x, int64_t d,
                                SliceDimension slice) const {
    std::vector<Instruction*> parts;
    for (Instruction* array : x) parts.push_back(b_.SliceAlong(array, d, slice));
    return parts;
  }

  Builder& b_;
  const ir::Computation& function_;
  const bool commutes_;
};

Instruction* Tree(Builder& b, Instruction* op) {
  const auto n = op->operand_count() / 2;
  const Shape& shape = op->operand(0)->shape();
  std::vector<Instruction*> x(op->operands().begin(), op->operands().begin() + n), results;
  bool is_empty = false;
  for (int64_t d : op->dimensions()) {
    is_empty |= shape.dim(d) == 0;
    if (shape.dimension(d).is_constant()) continue;
    b.Fail(Unimplemented("'", op->name(),
                         "': reduce by such a computation has no derivative along ",
                         "a dimension of ", shape.dimension(d)));
    return b.Zeros(op->shape());
  }
  const Halves halves(b, *op->called(0));
  Ints dimensions = op->dimensions();
  std::ranges::sort(dimensions, std::greater());
  std::vector<Dimension> kept;
  for (int64_t d : Kept(op)) kept.push_back(shape.dimension(d));
  if (!is_empty) {
    for (int64_t d : dimensions) x = halves.Fold(std::move(x), d);
    for (Instruction*& array : x) array = b.Reshape(array, kept);
  }
  for (int64_t k = 0; k < n; ++k) {
    Instruction* init = op->operand(n + k);
    results.push_back(is_empty ? b.Spread(Shape(init->shape().type(), kept), init)
                               : b.BroadcastLike(x[0], init, {}));
  }
  const std::optional<Opcode> fold = FoldOf(op);
  if (fold && !is_empty && b.IsIdentity(*fold, op->operand(1))) return x[0];
  if (!is_empty) results = halves.Both(std::move(results), x);
  return b.OneOrTuple(std::move(results));
}

// Which elements are the maximum or minimum f, and the number of them; and whether the initial
// value is, unless it is the identity.
struct Chosen {
  Chosen(Builder& b, Instruction* f, Opcode fold) {
    Instruction *x = f->operand(0), *init = f->operand(1);
    const ElementType type = x->shape().type();
    elements = b.Compare(Direction::kEq, x, b.BroadcastLike(x, f, Kept(f)));
    count = b.Sum(b.Convert(elements, type), f->dimensions());
    if (b.IsIdentity(fold, init)) return;
    initial = b.Compare(Direction::kEq, b.BroadcastLike(f, init, {}), f);
    count = b.Plus(count, b.Convert(initial, type));
  }

  Instruction *elements, *count, *initial = nullptr;
};

std::optional<Opcode> ExtremumOf(const Instruction* op) {
  const std::optional<Opcode> fold = FoldOf(op);
  return fold == Opcode::kMaximum || fold == Opcode::kMinimum ? fold : std::nullopt;
}

void HandOnShares(Reverse& reverse, Instruction* op, const Chosen& chosen, Instruction* t) {
  Builder& b = reverse.builder();
  Instruction *x = op->operand(0), *share = b.Over(t, chosen.count);
  if (reverse.IsActive(x)) {
    reverse.Add(x, b.Masked(chosen.elements, b.BroadcastLike(x, share, Kept(op))));
  }
  if (chosen.initial && reverse.IsActive(op->operand(1))) {
    reverse.Add(op->operand(1), b.SumOfAll(b.Masked(chosen.initial, share)));
  }
}

// Null: zero, as of an initial value that is never chosen.
Instruction* MeanTangent(Forward& forward, Instruction* op, const Chosen& chosen) {
  Builder& b = forward.builder();
  Instruction *x = op->operand(0), *init = op->operand(1), *sum = nullptr;
  if (forward.IsActive(x)) {
    sum = b.Sum(b.Masked(chosen.elements, forward.TangentOf(x).array), op->dimensions());
  }
  if (chosen.initial && forward.IsActive(init)) {
    Instruction* t = b.BroadcastLike(op, forward.TangentOf(init).array, {});
    t = b.Masked(chosen.initial, t);
    sum = sum ? b.Plus(sum, t) : t;
  }
  return sum ? b.Over(sum, chosen.count) : nullptr;
}

}  // namespace

// sum(x) + init: t in all places, and the sum of t. Maxima and minima: equal shares of t for all
// that are f. Any other function is that of halves of x, of their halves, and so on, so that
// products need no division.
template <>
bool Transpose<Opcode::kReduce>(Reverse& reverse, Instruction* op, const Derivative& cotangent) {
  Builder& b = reverse.builder();
  Instruction *x = op->operand(0), *t = cotangent.array;
  if (const std::optional<Opcode> extremum = ExtremumOf(op)) {
    HandOnShares(reverse, op, Chosen(b, op, *extremum), t);
  } else if (FoldOf(op) != Opcode::kAdd) {
    reverse.HandOnExpanded(op, cotangent, Tree);
  } else {
    if (reverse.IsActive(x)) reverse.Add(x, b.BroadcastLike(x, t, Kept(op)));
    if (reverse.IsActive(op->operand(1))) reverse.Add(op->operand(1), b.SumOfAll(t));
  }
  return true;
}
template <>
Derivative Tangent<Opcode::kReduce>(Forward& forward, Instruction* op) {
  if (const std::optional<Opcode> extremum = ExtremumOf(op)) {
    return {MeanTangent(forward, op, Chosen(forward.builder(), op, *extremum))};
  }
  return FoldOf(op) == Opcode::kAdd ? forward.OfLinear(op) : forward.TangentOfExpanded(op, Tree);
}

template <>
Instruction* Expansion<Opcode::kMap>(Builder& b, Instruction* op) {
  return Apply(b, *op->called(0), op->operands())[0];
}

}  // namespace kiln::grad

// Reductions. The order in which a reduction takes its elements is the target's affair: rules that
// change it say "order", and keep to the bound of a sum; maxima and integers do not notice.

#include <algorithm>

#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

bool Contains(const Ints& list, int64_t value) {
  return std::ranges::find(list, value) != list.end();
}

// reduce(x, init) => op(init, reshape(x))   where each result is made of one element
Instruction* OfSingles(Instruction* i, Opcode reducer) {
  Instruction* x = i->operand(0);
  for (int64_t d : i->dimensions()) {
    if (x->shape().dim(d) != 1) return nullptr;
  }
  Shape shape = WithType(i->shape(), i->shape().type());
  Instruction* elements = i->dimensions().empty() ? x : MakeShaped(i, shape, Opcode::kReshape, {x});
  return Make(i, reducer, {Spread(i, shape, i->operand(1)), elements});
}

// reduce(transpose(x)) => reduce(x)   where the dimensions that stay keep their places   (order)
Instruction* OfTranspose(Instruction* i) {
  const Instruction* x = i->operand(0);
  Ints dimensions;
  int64_t last = -1;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    int64_t from = x->dimensions()[static_cast<size_t>(d)];
    if (Contains(i->dimensions(), d)) {
      dimensions.push_back(from);
    } else if (from < last) {
      return nullptr;
    } else {
      last = from;
    }
  }
  std::ranges::sort(dimensions);
  return MakeReduce(i, i->shape(), x->operand(0), i->operand(1), std::move(dimensions));
}

// The dimensions that stay of an array of this rank.
Ints Kept(int64_t rank, const Ints& reduced) {
  Ints kept;
  for (int64_t d = 0; d < rank; ++d) {
    if (!Contains(reduced, d)) kept.push_back(d);
  }
  return kept;
}

// reduce(reduce(x, init), init) => reduce(x, init)   where nobody else needs the inner one, and
// init counts once however often it is taken   (order)
Instruction* OfReduce(Instruction* i, Opcode reducer) {
  const Instruction* x = i->operand(0);
  if (ReducerOf(*x) != reducer || !IsUsedOnce(x)) return nullptr;
  if (!IsSame(x->operand(1), i->operand(1))) return nullptr;
  // -0 is the neutral element of a sum of floats; with +0 a sum of -0 is +0 at once or at last.
  const Instruction* init = i->operand(1);
  bool neutral =
      (reducer == Opcode::kAdd && (init->IsConstantOf(0.0) || init->IsConstantOf(-0.0))) ||
      (reducer == Opcode::kMultiply && init->IsConstantOf(1.0)) ||
      (reducer == Opcode::kXor && init->IsConstantOf(0.0));
  if (!neutral && !IsIdempotent(reducer, i->shape().type())) return nullptr;
  Ints kept = Kept(x->operand(0)->shape().rank(), x->dimensions());
  Ints dimensions = x->dimensions();
  for (int64_t d : i->dimensions()) dimensions.push_back(kept[static_cast<size_t>(d)]);
  std::ranges::sort(dimensions);
  return MakeReduce(i, i->shape(), x->operand(0), i->operand(1), std::move(dimensions));
}

// reduce(broadcast(x)) => reduce(x)   where dimensions that only repeat x are reduced by an op for
// which that changes nothing, or sums of integers, which become multiples
Instruction* OfBroadcast(Instruction* i, Opcode reducer) {
  const Instruction* x = i->operand(0);
  bool is_sum = reducer == Opcode::kAdd && IsInt(i);
  if (!is_sum && !IsIdempotent(reducer, i->shape().type())) return nullptr;
  // The broadcast again, without those dimensions.
  std::vector<int64_t> dims, place(static_cast<size_t>(x->shape().rank()), -1);
  Ints dimensions, places;
  int64_t times = 1;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    bool reduced = Contains(i->dimensions(), d);
    if (reduced && !Contains(x->dimensions(), d)) {
      times *= x->shape().dim(d);
      continue;
    }
    place[static_cast<size_t>(d)] = static_cast<int64_t>(dims.size());
    if (reduced) dimensions.push_back(static_cast<int64_t>(dims.size()));
    dims.push_back(x->shape().dim(d));
  }
  if (times == 1) return nullptr;
  for (int64_t d : x->dimensions()) places.push_back(place[static_cast<size_t>(d)]);
  Shape shape = ShapeOf(i->shape().type(), dims);
  Instruction* small = x->operand(0);
  if (!(std::ranges::is_sorted(places) && small->shape() == shape)) {
    small = MakeShaped(i, shape, Opcode::kBroadcast, {small}, {{Attr::kDimensions, places}});
  }
  if (is_sum) {
    Literal factor(Shape::Scalar(shape.type()));
    VisitType(shape.type(), [&](auto zero) {
      using T = decltype(zero);
      factor.values<T>()[0] = static_cast<T>(times);
    });
    small = MakeShaped(i, shape, Opcode::kMultiply, {small, Splat(i, shape, std::move(factor))});
  }
  if (!dimensions.empty()) {
    return MakeReduce(i, i->shape(), small, i->operand(1), std::move(dimensions));
  }
  return Make(i, reducer, {Spread(i, shape, i->operand(1)), small});
}

}  // namespace

Instruction* ReduceRules(Instruction* i) {
  if (i->opcode() != Opcode::kReduce || i->operand_count() != 2) return nullptr;
  Instruction* x = i->operand(0);
  // reduce({}, init) => broadcast(init)
  if (x->shape().num_elements() == 0) return Spread(i, i->shape(), i->operand(1));
  std::optional<Opcode> reducer = ReducerOf(*i);
  if (!reducer) return nullptr;
  if (Instruction* simpler = OfSingles(i, *reducer)) return simpler;
  switch (x->opcode()) {
    case Opcode::kTranspose:
      return OfTranspose(i);
    case Opcode::kReduce:
      return OfReduce(i, *reducer);
    case Opcode::kBroadcast:
      return OfBroadcast(i, *reducer);
    case Opcode::kReshape: {
      // reduce(reshape(x)) => reduce(x)   where everything is reduced
      if (static_cast<int64_t>(i->dimensions().size()) != x->shape().rank()) return nullptr;
      Ints all = Kept(x->operand(0)->shape().rank(), {});
      return MakeReduce(i, i->shape(), x->operand(0), i->operand(1), std::move(all));
    }
    default:
      return nullptr;
  }
}

}  // namespace kiln::passes::simplify

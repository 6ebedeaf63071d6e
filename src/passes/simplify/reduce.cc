// Reductions. The order of a reduction's elements is the target's choice. Rules marked "order"
// change it, within the error bound of a sum; maxima and integers keep their bits.

#include <algorithm>

#include "ops/other_dimensions.h"
#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

bool Contains(const Ints& list, int64_t value) {
  return std::ranges::find(list, value) != list.end();
}

// reduce(x, init) => op(init, reshape(x))   where each result has one element
Instruction* OfSingles(Instruction* i, Opcode reducer) {
  Instruction* x = i->operand(0);
  for (int64_t d : i->dimensions()) {
    if (x->shape().dim(d) != 1) return nullptr;
  }
  Shape shape = WithType(i->shape(), i->shape().type());
  Instruction* elements = i->dimensions().empty() ? x : MakeShaped(i, shape, Opcode::kReshape, {x});
  return Make(i, reducer, {Spread(i, shape, i->operand(1)), elements});
}

// reduce(transpose(x)) => reduce(x)   where the remaining dimensions keep their order   (order)
// reduce(transpose(x)) => transpose(reduce(x))   where the remaining dimensions change their order,
// and the transpose has no other users   (order)
Instruction* OfTranspose(Instruction* i) {
  const Instruction* x = i->operand(0);
  Ints dimensions, kept;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    int64_t from = x->dimensions()[static_cast<size_t>(d)];
    (Contains(i->dimensions(), d) ? dimensions : kept).push_back(from);
  }
  std::ranges::sort(dimensions);
  if (std::ranges::is_sorted(kept)) {
    return MakeReduce(i, i->shape(), x->operand(0), i->operand(1), std::move(dimensions));
  }
  if (!IsUsedOnce(x)) return nullptr;
  Ints sorted = kept, permutation;
  std::ranges::sort(sorted);
  std::vector<int64_t> dims;
  for (int64_t d : sorted) dims.push_back(x->operand(0)->shape().dim(d));
  for (int64_t d : kept) permutation.push_back(std::ranges::find(sorted, d) - sorted.begin());
  Instruction* small = MakeReduce(i, ShapeOf(i->shape().type(), dims), x->operand(0), i->operand(1),
                                  std::move(dimensions));
  return Make(i, Opcode::kTranspose, {small}, {{Attr::kDimensions, std::move(permutation)}});
}

// Whether init may be taken any number of times. -0 is the neutral element of a sum of floats; with
// +0, a sum of -0 becomes +0 sooner or later.
bool CountsOnce(const Instruction* init, Opcode reducer) {
  return (reducer == Opcode::kAdd && (init->IsConstantOf(0.0) || init->IsConstantOf(-0.0))) ||
         (reducer == Opcode::kMultiply && init->IsConstantOf(1.0)) ||
         (reducer == Opcode::kXor && init->IsConstantOf(0.0)) ||
         IsIdempotent(reducer, init->shape().type());
}

// reduce(reduce(x, init), init) => reduce(x, init)   where the inner one has no other users, and
// init may be taken twice   (order)
Instruction* OfReduce(Instruction* i, Opcode reducer) {
  const Instruction* x = i->operand(0);
  if (ReducerOf(*x) != reducer || !IsUsedOnce(x)) return nullptr;
  if (!IsSame(x->operand(1), i->operand(1))) return nullptr;
  if (!CountsOnce(i->operand(1), reducer)) return nullptr;
  Ints kept = OtherDimensions(x->operand(0)->shape().rank(), x->dimensions());
  Ints dimensions = x->dimensions();
  for (int64_t d : i->dimensions()) dimensions.push_back(kept[static_cast<size_t>(d)]);
  std::ranges::sort(dimensions);
  return MakeReduce(i, i->shape(), x->operand(0), i->operand(1), std::move(dimensions));
}

// Whether `times` repetitions of x have the sum x * times. Integers have. Floats have if the type
// has the number, nothing else is summed, and the sum begins at a zero: one rounding replaces
// several, and an overflow stays one.
bool IsMultiple(const Instruction* i, int64_t times, bool nothing_else) {
  if (IsInt(i)) return true;
  if (!IsFloat(i) || !nothing_else) return false;
  if (!i->operand(1)->IsConstantOf(0.0) && !i->operand(1)->IsConstantOf(-0.0)) return false;
  double exact = static_cast<double>(times);
  return Literal::ScalarOf(i->shape().type(), exact).AsDouble(0) == exact;
}

// reduce(broadcast(x)) => reduce(x)   where reduced dimensions only repeat x, and the op is
// idempotent
// reduce(broadcast(x)) => reduce(x * n)   where reduced dimensions repeat x n times   (sums;
// floats: where nothing else is summed, and the type has n; rounded once)
Instruction* OfBroadcast(Instruction* i, Opcode reducer) {
  const Instruction* x = i->operand(0);
  bool is_sum = reducer == Opcode::kAdd && !IsPred(i);
  if (!is_sum && !IsIdempotent(reducer, i->shape().type())) return nullptr;
  // The broadcast without the repetitions.
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
  if (times == 1 || (is_sum && !IsMultiple(i, times, dimensions.empty()))) return nullptr;
  for (int64_t d : x->dimensions()) places.push_back(place[static_cast<size_t>(d)]);
  Shape shape = ShapeOf(i->shape().type(), dims);
  Instruction* small = x->operand(0);
  if (!(std::ranges::is_sorted(places) && small->shape() == shape)) {
    small = MakeShaped(i, shape, Opcode::kBroadcast, {small}, {{Attr::kDimensions, places}});
  }
  if (is_sum) {
    Literal factor(Shape::Scalar(shape.type()));
    VisitKernelType(shape.type(), [&](auto zero) {
      using T = decltype(zero);
      factor.values<T>()[0] = static_cast<T>(times);  // Integers wrap.
    });
    small = MakeShaped(i, shape, Opcode::kMultiply, {small, Splat(i, shape, std::move(factor))});
  }
  if (!dimensions.empty()) {
    return MakeReduce(i, i->shape(), small, i->operand(1), std::move(dimensions));
  }
  return Make(i, reducer, {Spread(i, shape, i->operand(1)), small});
}

// reduce(broadcast(x)) => broadcast(reduce(x))   where remaining dimensions only repeat x
Instruction* OfRepetition(Instruction* i) {
  const Instruction* x = i->operand(0);
  std::vector<int64_t> dims, result_dims;
  Ints dimensions, places, place(static_cast<size_t>(x->shape().rank()), -1);
  int64_t at = 0;
  bool repeats = false;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    bool reduced = Contains(i->dimensions(), d);
    int64_t of_result = reduced ? -1 : at++;
    if (!reduced && !Contains(x->dimensions(), d)) {
      repeats |= x->shape().dim(d) > 1;
      continue;
    }
    place[static_cast<size_t>(d)] = static_cast<int64_t>(dims.size());
    if (reduced) {
      dimensions.push_back(static_cast<int64_t>(dims.size()));
    } else {
      places.push_back(of_result);
      result_dims.push_back(x->shape().dim(d));
    }
    dims.push_back(x->shape().dim(d));
  }
  if (!repeats || dimensions.empty()) return nullptr;
  Ints inner;
  for (int64_t d : x->dimensions()) inner.push_back(place[static_cast<size_t>(d)]);
  Shape shape = ShapeOf(i->shape().type(), dims);
  Instruction* small = x->operand(0);
  if (!(std::ranges::is_sorted(inner) && small->shape() == shape)) {
    small = MakeShaped(i, shape, Opcode::kBroadcast, {small}, {{Attr::kDimensions, inner}});
  }
  Instruction* reduced = MakeReduce(i, ShapeOf(i->shape().type(), result_dims), small,
                                    i->operand(1), std::move(dimensions));
  return Make(i, Opcode::kBroadcast, {reduced}, {{Attr::kDimensions, std::move(places)}});
}

// reduce(-x, 0) => -reduce(x, 0)   where -x has no other users   (sums of integers; a zero sum of
// floats would become -0)
Instruction* OfNegate(Instruction* i, Opcode reducer) {
  const Instruction* x = i->operand(0);
  if (reducer != Opcode::kAdd || !IsInt(i) || !IsUsedOnce(x)) return nullptr;
  if (!i->operand(1)->IsConstantOf(0.0)) return nullptr;
  Shape shape = WithType(i->shape(), i->shape().type());
  return Make(i, Opcode::kNegate,
              {MakeReduce(i, shape, x->operand(0), i->operand(1), i->dimensions())});
}

// reduce(dot(x, y)) => dot(x, y)   where only batch dimensions are reduced, and the dot has no
// other users; they become contracting dimensions   (sums; order)
Instruction* OfDot(Instruction* i, Opcode reducer) {
  const Instruction* dot = i->operand(0);
  if (reducer != Opcode::kAdd || IsPred(i) || !IsUsedOnce(dot)) return nullptr;
  if (!i->operand(1)->IsConstantOf(0.0) && !i->operand(1)->IsConstantOf(-0.0)) return nullptr;
  Attributes attributes = dot->attributes();
  const int64_t batches = static_cast<int64_t>(attributes.IntsOf(Attr::kLhsBatchDims).size());
  for (int64_t d : i->dimensions()) {
    if (d >= batches) return nullptr;
  }
  for (auto [batch, contracting] : {std::pair(Attr::kLhsBatchDims, Attr::kLhsContractingDims),
                                    std::pair(Attr::kRhsBatchDims, Attr::kRhsContractingDims)}) {
    Ints stays, summed = dot->attributes().IntsOf(contracting);
    for (int64_t d = 0; d < batches; ++d) {
      int64_t dim = dot->attributes().IntsOf(batch)[static_cast<size_t>(d)];
      (Contains(i->dimensions(), d) ? summed : stays).push_back(dim);
    }
    attributes.Set(batch, std::move(stays));
    attributes.Set(contracting, std::move(summed));
  }
  return Make(i, Opcode::kDot, {dot->operand(0), dot->operand(1)}, std::move(attributes));
}

// reduce(concatenate(x, y)) => op(reduce(x), reduce(y))   where the dimension of the concatenation
// is reduced, the concatenation has no other users, and init may be taken twice   (order)
Instruction* OfConcatenate(Instruction* i, Opcode reducer) {
  const Instruction* x = i->operand(0);
  if (!IsUsedOnce(x) || !CountsOnce(i->operand(1), reducer)) return nullptr;
  if (!Contains(i->dimensions(), x->dimensions()[0])) return nullptr;
  // Each further part is a kernel, or an op on results.
  if (x->operand_count() > 4 ||
      (x->operand_count() - 1) * 4 * i->shape().num_elements() >= x->shape().num_elements()) {
    return nullptr;
  }
  Shape shape = WithType(i->shape(), i->shape().type());
  Instruction* result = nullptr;
  for (int64_t k = 0; k < x->operand_count(); ++k) {
    Instruction* part = MakeReduce(i, shape, x->operand(k), i->operand(1), i->dimensions());
    bool last = k + 1 == x->operand_count();
    result = result ? MakeShaped(i, last ? i->shape() : shape, reducer, {result, part}) : part;
  }
  return result;
}

}  // namespace

bool IsNeutral(const Instruction* value, const Instruction* init, Opcode reducer) {
  switch (reducer) {
    case Opcode::kAdd:
      // +0 changes sums of -0 only, and none that begins at +0.
      return value->IsConstantOf(IsFloat(value) ? -0.0 : 0.0) ||
             (value->IsConstantOf(0.0) && init->IsConstantOf(0.0));
    case Opcode::kMultiply:
      return value->IsConstantOf(1.0);
    case Opcode::kMaximum:
      return IsLowest(value);
    case Opcode::kMinimum:
      return IsHighest(value);
    case Opcode::kAnd:
      return IsAllOnes(value);
    case Opcode::kOr:
    case Opcode::kXor:
      return value->IsConstantOf(0.0);
    default:
      return false;
  }
}

namespace {

// reduce(pad(x, v)) => reduce(x)   where only reduced dimensions are padded, nothing is cut off,
// and v is neutral   (order)
Instruction* OfPad(Instruction* i, Opcode reducer) {
  const Instruction* x = i->operand(0);
  if (!IsNeutral(x->operand(1), i->operand(1), reducer)) return nullptr;
  int64_t d = 0;
  for (const PaddingDimension& p : x->attributes().Padding(Attr::kPadding)) {
    if (p.low < 0 || p.high < 0) return nullptr;
    if (!Contains(i->dimensions(), d++) && p != PaddingDimension{}) return nullptr;
  }
  return MakeReduce(i, i->shape(), x->operand(0), i->operand(1), i->dimensions());
}

// reduce(reshape(x)) => reshape(reduce(x))   where dimensions merged or split together are all
// reduced, or all remain   (order)
Instruction* OfReshape(Instruction* i) {
  const Instruction* x = i->operand(0);
  std::vector<int64_t> from = x->operand(0)->shape().dims(), to = x->shape().dims();
  // Groups of dimensions with the same elements. Dimensions of size 1 belong to any.
  Ints dimensions;
  std::vector<int64_t> kept;
  size_t f = 0, t = 0;
  while (f < from.size() || t < to.size()) {
    size_t first_f = f, first_t = t;
    int64_t elements_f = f < from.size() ? from[f++] : 1, elements_t = 1;
    while (elements_f != elements_t || (t < to.size() && to[t] == 1)) {
      if (elements_t < elements_f || (elements_t == elements_f && t < to.size())) {
        elements_t *= to[t++];
      } else {
        elements_f *= from[f++];
      }
    }
    bool any_reduced = false, any_kept = false;
    for (size_t d = first_t; d < t; ++d) {
      if (to[d] == 1) continue;
      (Contains(i->dimensions(), static_cast<int64_t>(d)) ? any_reduced : any_kept) = true;
    }
    if (any_reduced && any_kept) return nullptr;
    for (size_t d = first_f; d < f; ++d) {
      if (any_reduced) {
        dimensions.push_back(static_cast<int64_t>(d));
      } else {
        kept.push_back(from[d]);
      }
    }
  }
  if (dimensions.empty()) return nullptr;
  Shape shape = ShapeOf(i->shape().type(), kept);
  if (shape.SameDimensions(i->shape())) {
    return MakeReduce(i, i->shape(), x->operand(0), i->operand(1), std::move(dimensions));
  }
  if (!IsUsedOnce(x) || WillBeConstant(x)) return nullptr;
  return Make(i, Opcode::kReshape,
              {MakeReduce(i, shape, x->operand(0), i->operand(1), std::move(dimensions))});
}

}  // namespace

Instruction* ReduceRules(Instruction* i) {
  if (i->opcode() != Opcode::kReduce || i->operand_count() != 2) return nullptr;
  Instruction* x = i->operand(0);
  // reduce({}, init) => broadcast(init)
  if (x->shape().num_elements() == 0) return Spread(i, i->shape(), i->operand(1));
  if (x->opcode() == Opcode::kBroadcast) {
    if (Instruction* simpler = OfRepetition(i)) return simpler;
  }
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
    case Opcode::kReshape:
      return OfReshape(i);
    case Opcode::kConcatenate:
      return OfConcatenate(i, *reducer);
    case Opcode::kPad:
      return OfPad(i, *reducer);
    case Opcode::kNegate:
      return OfNegate(i, *reducer);
    case Opcode::kDot:
      return OfDot(i, *reducer);
    default:
      return nullptr;
  }
}

}  // namespace kiln::passes::simplify

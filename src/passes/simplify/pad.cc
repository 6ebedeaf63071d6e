#include <algorithm>

#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;
using Padding = std::vector<PaddingDimension>;

// pad(pad(x, v), v) => pad(x, v)   where nothing is cut off, and the outer one has no interior
// padding
Instruction* OfPad(Instruction* i) {
  const Instruction* x = i->operand(0);
  if (!IsSame(x->operand(1), i->operand(1))) return nullptr;
  Padding both = i->attributes().Padding(Attr::kPadding);
  const Padding& inner = x->attributes().Padding(Attr::kPadding);
  for (size_t d = 0; d < both.size(); ++d) {
    PaddingDimension &p = both[d], q = inner[d];
    if (p.interior != 0 || std::min({p.low, p.high, q.low, q.high}) < 0) return nullptr;
    p = {p.low + q.low, p.high + q.high, q.interior};
  }
  return Make(i, Opcode::kPad, {x->operand(0), i->operand(1)}, {{Attr::kPadding, both}});
}

// pad(x) => slice(x)   where nothing is added
Instruction* AsSlice(Instruction* i) {
  Instruction* x = i->operand(0);
  std::vector<SliceDimension> slices;
  for (const PaddingDimension& p : i->attributes().Padding(Attr::kPadding)) {
    int64_t size = x->shape().dim(static_cast<int64_t>(slices.size()));
    // Interior padding needs two elements.
    if (p.low > 0 || p.high > 0 || (p.interior != 0 && size > 1)) return nullptr;
    slices.push_back({-p.low, size + p.high, 1});
  }
  return Make(i, Opcode::kSlice, {x}, {{Attr::kSlice, std::move(slices)}});
}

// pad(broadcast(x), v) => broadcast(pad(broadcast(x), v))   where unpadded dimensions only repeat
// x, four times or more
Instruction* OfBroadcast(Instruction* i) {
  const Instruction* x = i->operand(0);
  const Padding& padding = i->attributes().Padding(Attr::kPadding);
  std::vector<int64_t> from, to;
  Ints places, inner(x->dimensions().size());
  Padding kept;
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    auto of_x = std::ranges::find(x->dimensions(), d);
    const PaddingDimension& p = padding[static_cast<size_t>(d)];
    if (of_x == x->dimensions().end() && p == PaddingDimension{}) continue;
    if (of_x != x->dimensions().end()) {
      inner[static_cast<size_t>(of_x - x->dimensions().begin())] =
          static_cast<int64_t>(from.size());
    }
    from.push_back(x->shape().dim(d));
    to.push_back(i->shape().dim(d));
    places.push_back(d);
    kept.push_back(p);
  }
  Shape small = ShapeOf(i->shape().type(), to);
  if (4 * small.num_elements() > i->shape().num_elements()) return nullptr;
  Instruction* repeated = MakeShaped(i, ShapeOf(i->shape().type(), from), Opcode::kBroadcast,
                                     {x->operand(0)}, {{Attr::kDimensions, std::move(inner)}});
  Instruction* pad = MakeShaped(i, small, Opcode::kPad, {repeated, i->operand(1)},
                                {{Attr::kPadding, std::move(kept)}});
  return Make(i, Opcode::kBroadcast, {pad}, {{Attr::kDimensions, std::move(places)}});
}

// op(pad(x, c), spread(d)) => pad(op(x, spread(d)), op(c, d))   where c and d are constants, and
// the pad has no other users
Instruction* OpOfPad(Instruction* i) {
  if (i->opcode() == Opcode::kCopy) return nullptr;
  const Instruction* pad = nullptr;
  for (const Instruction* x : i->operands()) {
    if (x->opcode() == Opcode::kPad && !pad && x->shape().rank() > 0) {
      pad = x;
    } else if (!SplatOf(x)) {
      return nullptr;
    }
  }
  if (!pad || !IsUsedOnce(pad) || !SplatOf(pad->operand(1)) || WillBeConstant(pad->operand(0)) ||
      pad->operand(0)->shape().num_elements() >= pad->shape().num_elements()) {
    return nullptr;
  }
  const Shape& small = pad->operand(0)->shape();
  std::vector<Instruction*> of_x, of_c;
  for (Instruction* x : i->operands()) {
    if (x == pad) {
      of_x.push_back(x->operand(0));
      of_c.push_back(x->operand(1));
      continue;
    }
    Instruction* d = ScalarOf(i, x);
    bool stays = x->shape().is_scalar();
    of_x.push_back(stays ? d : Spread(i, WithType(small, d->shape().type()), d));
    of_c.push_back(d);
  }
  ElementType type = i->shape().type();
  Instruction* value =
      MakeShaped(i, Shape::Scalar(type), i->opcode(), std::move(of_c), i->attributes());
  Instruction* op =
      MakeShaped(i, WithType(small, type), i->opcode(), std::move(of_x), i->attributes());
  return Make(i, Opcode::kPad, {op, value}, pad->attributes());
}

// The column of pairs along rows that a pad leaves its operand's elements in: 0 or 1, or -1 where
// it does something else.
int ColumnOfPairs(const Instruction* x) {
  if (x->opcode() != Opcode::kPad || x->shape().rank() == 0 || !x->shape().is_row_major())
    return -1;
  const Padding& padding = x->attributes().Padding(Attr::kPadding);
  for (size_t d = 0; d + 1 < padding.size(); ++d) {
    if (padding[d] != PaddingDimension{}) return -1;
  }
  if (padding.back() == PaddingDimension{.low = 0, .high = 1, .interior = 1}) return 0;
  return padding.back() == PaddingDimension{.low = 1, .high = 0, .interior = 1} ? 1 : -1;
}

// op(pad(x, v), pad(y, w)) => reshape(concatenate(op(x, w), op(v, y)))   where the elements of x
// and y are pairs along rows
Instruction* OpOfPairs(Instruction* i) {
  if (i->operand_count() != 2 || i->shape().num_elements() == 0) return nullptr;
  const Instruction *a = i->operand(0), *b = i->operand(1);
  const int of_a = ColumnOfPairs(a), of_b = ColumnOfPairs(b);
  if (of_a < 0 || of_b < 0 || of_a == of_b || !IsUsedOnce(a) || !IsUsedOnce(b)) return nullptr;
  Ints dims = a->operand(0)->shape().dims();
  const auto side = static_cast<int64_t>(dims.size());
  const ElementType type = i->shape().type();
  const Shape half = ShapeOf(type, dims);
  dims.push_back(1);
  std::vector<Instruction*> columns;
  for (int column : {0, 1}) {
    std::vector<Instruction*> operands;
    for (const Instruction* pad : {a, b}) {
      Instruction *x = pad->operand(0), *v = pad->operand(1);
      const bool is_here = (pad == a ? of_a : of_b) == column;
      operands.push_back(is_here ? x : Spread(i, x->shape(), v));
    }
    Instruction* op = MakeShaped(i, half, i->opcode(), std::move(operands), i->attributes());
    columns.push_back(MakeShaped(i, ShapeOf(type, dims), Opcode::kReshape, {op}));
  }
  dims.back() = 2;
  Instruction* pairs = MakeShaped(i, ShapeOf(type, dims), Opcode::kConcatenate, std::move(columns),
                                  {{Attr::kDimensions, Ints{side}}});
  return Make(i, Opcode::kReshape, {pairs});
}

}  // namespace

Instruction* PadRules(Instruction* i) {
  if (IsElementwise(i->opcode())) {
    if (Instruction* pairs = OpOfPairs(i)) return pairs;
    return OpOfPad(i);
  }
  if (i->opcode() != Opcode::kPad || i->shape().num_elements() == 0) return nullptr;
  Instruction *x = i->operand(0), *v = i->operand(1);
  // pad({}, v) => broadcast(v)
  if (x->shape().num_elements() == 0) return Spread(i, i->shape(), v);
  // pad(x, v) => x   where nothing is added or cut off
  if (std::ranges::all_of(i->attributes().Padding(Attr::kPadding),
                          [](const PaddingDimension& p) { return p == PaddingDimension{}; })) {
    return x;
  }
  // pad(broadcast(v), v) => broadcast(v)
  if (x->opcode() == Opcode::kBroadcast && x->operand(0)->shape().is_scalar() &&
      IsSame(x->operand(0), v)) {
    return Spread(i, i->shape(), v);
  }
  if (x->opcode() == Opcode::kPad) {
    if (Instruction* both = OfPad(i)) return both;
  }
  if (Instruction* slice = AsSlice(i)) return slice;
  return x->opcode() == Opcode::kBroadcast ? OfBroadcast(i) : nullptr;
}

}  // namespace kiln::passes::simplify

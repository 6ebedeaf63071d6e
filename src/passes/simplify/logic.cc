// Bits of integers, and preds. Of preds, the sum and the maximum are "or", the product and the
// minimum "and".

#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

bool IsNot(const Instruction* x) { return x->opcode() == Opcode::kNot; }

// Whether one is the other with every bit inverted.
bool AreComplements(const Instruction* x, const Instruction* y) {
  return (IsNot(x) && x->operand(0) == y) || (IsNot(y) && y->operand(0) == x);
}

// x + y => x or y,  x * y => x and y   (preds; form)
// max(x, y) => x or y,  min(x, y) => x and y   (preds; form)
Instruction* OfPreds(Instruction* i) {
  switch (i->opcode()) {
    case Opcode::kAdd:
    case Opcode::kMaximum:
      return Make(i, Opcode::kOr, {i->operand(0), i->operand(1)});
    case Opcode::kMultiply:
    case Opcode::kMinimum:
      return Make(i, Opcode::kAnd, {i->operand(0), i->operand(1)});
    default:
      return nullptr;
  }
}

// x < c and x < d => x < min(c, d),  x < c or x < d => x < max(c, d)   where c and d are constants
// (and the other orders)
Instruction* OfCompares(Instruction* i) {
  Instruction *p = i->operand(0), *q = i->operand(1);
  if (p->opcode() != Opcode::kCompare || !(p->attributes() == q->attributes()) ||
      q->opcode() != Opcode::kCompare || p->operand(0) != q->operand(0) ||
      p->attributes().Has(Attr::kOrderType)) {
    return nullptr;
  }
  std::optional<Literal> c = SplatOf(p->operand(1)), d = SplatOf(q->operand(1));
  if (!c || !d || !IsKernelType(c->shape().type())) return nullptr;
  bool below = false, above = false;
  VisitKernelType(c->shape().type(), [&](auto zero) {
    using T = decltype(zero);
    below = c->values<T>()[0] < d->values<T>()[0];
    above = c->values<T>()[0] > d->values<T>()[0];
  });
  if (!below && !above) return nullptr;  // Equal, or NaNs.
  bool is_and = i->opcode() == Opcode::kAnd;
  switch (p->attributes().DirectionOf(Attr::kDirection)) {
    case Direction::kLt:
    case Direction::kLe:
      return below == is_and ? p : q;
    case Direction::kGt:
    case Direction::kGe:
      return below == is_and ? q : p;
    case Direction::kEq:
    case Direction::kNe:
      return nullptr;
  }
  return nullptr;
}

// Of two elements: below, equal, above, or a NaN among them.
enum Relation : uint8_t { kBelow = 1, kEqual = 2, kAbove = 4, kUnordered = 8 };

// The relations for which a comparison holds.
int RelationsOf(Direction direction, bool is_float) {
  switch (direction) {
    case Direction::kLt:
      return kBelow;
    case Direction::kLe:
      return kBelow | kEqual;
    case Direction::kGt:
      return kAbove;
    case Direction::kGe:
      return kAbove | kEqual;
    case Direction::kEq:
      return kEqual;
    case Direction::kNe:
      return kBelow | kAbove | (is_float ? kUnordered : 0);
  }
  return 0;
}

// x < y and x != y => x < y,  x < y or x == y => x <= y   (and the other orders, also of y and x)
Instruction* OfOneOrder(Instruction* i) {
  Instruction *p = i->operand(0), *q = i->operand(1);
  for (const Instruction* compare : {p, q}) {
    if (compare->opcode() != Opcode::kCompare) return nullptr;
    if (compare->attributes().Has(Attr::kOrderType)) return nullptr;
  }
  auto are_operands = [&](int64_t x, int64_t y) {
    return IsSame(p->operand(0), q->operand(x)) && IsSame(p->operand(1), q->operand(y));
  };
  const bool is_flipped = !are_operands(0, 1);
  if (is_flipped && !are_operands(1, 0)) return nullptr;
  const bool is_float = IsFloat(p->operand(0));
  const Direction other = q->attributes().DirectionOf(Attr::kDirection);
  const int of_p = RelationsOf(p->attributes().DirectionOf(Attr::kDirection), is_float);
  const int of_q = RelationsOf(is_flipped ? Flipped(other) : other, is_float);
  const int both = i->opcode() == Opcode::kAnd ? of_p & of_q : of_p | of_q;
  if (both == of_p) return p;
  if (both == of_q) return q;
  if (both == 0) return SplatNumber(i, i->shape(), 0);
  if (both == (kBelow | kEqual | kAbove | (is_float ? kUnordered : 0))) {
    return SplatAllOnes(i, i->shape());
  }
  if (!IsUsedOnce(p) && !IsUsedOnce(q)) return nullptr;
  for (Direction direction : {Direction::kLt, Direction::kLe, Direction::kGt, Direction::kGe,
                              Direction::kEq, Direction::kNe}) {
    if (RelationsOf(direction, is_float) != both) continue;
    return Make(i, Opcode::kCompare, {p->operand(0), p->operand(1)},
                {{Attr::kDirection, direction}});
  }
  return nullptr;
}

// And, or. Each is the other's dual: all bits set and none set change places.
Instruction* AndOr(Instruction* i) {
  bool is_and = i->opcode() == Opcode::kAnd;
  Opcode mirror = is_and ? Opcode::kOr : Opcode::kAnd;
  Instruction *x = i->operand(0), *y = i->operand(1);
  bool none = y->IsConstantOf(0.0), all = IsAllOnes(y);
  // x and 1...1 => x,  x or 0 => x
  if (is_and ? all : none) return x;
  // x and 0 => 0,  x or 1...1 => 1...1
  if (is_and ? none : all) return y;
  // x and not x => 0,  x or not x => 1...1
  if (AreComplements(x, y)) {
    return is_and ? SplatNumber(i, i->shape(), 0) : SplatAllOnes(i, i->shape());
  }
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *inner = i->operand(k), *other = i->operand(1 - k);
    if (inner->opcode() != mirror) continue;
    // x and (x or y) => x,  x or (x and y) => x
    if (IsSame(inner->operand(0), other) || IsSame(inner->operand(1), other)) return other;
  }
  if (!IsPred(i)) return nullptr;
  Instruction* simpler = OfOneOrder(i);
  return simpler ? simpler : OfCompares(i);
}

Instruction* Xor(Instruction* i) {
  Instruction *x = i->operand(0), *y = i->operand(1);
  // x xor x => 0
  if (IsSame(x, y)) return SplatNumber(i, i->shape(), 0);
  // x xor 0 => x
  if (y->IsConstantOf(0.0)) return x;
  // x xor 1...1 => not x
  if (IsAllOnes(y)) return Make(i, Opcode::kNot, {x});
  // x xor not x => 1...1
  if (AreComplements(x, y)) return SplatAllOnes(i, i->shape());
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *inner = i->operand(k), *other = i->operand(1 - k);
    if (inner->opcode() != Opcode::kXor) continue;
    // x xor (x xor y) => y
    for (int64_t l = 0; l < 2; ++l) {
      if (inner->operand(l) == other) return inner->operand(1 - l);
    }
  }
  // not x xor not y => x xor y
  if (IsNot(x) && IsNot(y)) return Make(i, Opcode::kXor, {x->operand(0), y->operand(0)});
  return nullptr;
}

// The negated comparison. Of floats, only == and != have one.
std::optional<Direction> Opposite(Direction direction, bool is_float) {
  switch (direction) {
    case Direction::kEq:
      return Direction::kNe;
    case Direction::kNe:
      return Direction::kEq;
    case Direction::kGe:
      return is_float ? std::nullopt : std::optional(Direction::kLt);
    case Direction::kGt:
      return is_float ? std::nullopt : std::optional(Direction::kLe);
    case Direction::kLe:
      return is_float ? std::nullopt : std::optional(Direction::kGt);
    case Direction::kLt:
      return is_float ? std::nullopt : std::optional(Direction::kGe);
  }
  return std::nullopt;
}

Instruction* Not(Instruction* i) {
  Instruction* x = i->operand(0);
  // not not x => x
  if (IsNot(x)) return x->operand(0);
  // not (x < y) => x >= y   (and so on; floats: == and != only, since NaNs have no order)
  if (x->opcode() == Opcode::kCompare && !x->attributes().Has(Attr::kOrderType)) {
    std::optional<Direction> opposite = Opposite(x->attributes().DirectionOf(Attr::kDirection),
                                                 !IsInt(x->operand(0)) && !IsPred(x->operand(0)));
    if (opposite) {
      return Make(i, Opcode::kCompare, {x->operand(0), x->operand(1)},
                  {{Attr::kDirection, *opposite}});
    }
  }
  // not (not x and not y) => x or y,  not (not x or not y) => x and y
  if ((x->opcode() == Opcode::kAnd || x->opcode() == Opcode::kOr) && IsNot(x->operand(0)) &&
      IsNot(x->operand(1))) {
    return Make(i, x->opcode() == Opcode::kAnd ? Opcode::kOr : Opcode::kAnd,
                {x->operand(0)->operand(0), x->operand(1)->operand(0)});
  }
  return nullptr;
}

// Whether the amount is a constant that is, as unsigned, at least the width.
bool ShiftsOut(const Instruction* amount) {
  std::optional<Literal> splat = SplatOf(amount);
  if (!splat) return false;
  int64_t bits = splat->AsInt(0);
  return bits < 0 || bits >= BitWidth(amount->shape().type());
}

Instruction* Shift(Instruction* i) {
  Instruction *x = i->operand(0), *y = i->operand(1);
  // x << 0 => x,  0 << y => 0   (and shifts to the right)
  if (y->IsConstantOf(0.0) || x->IsConstantOf(0.0)) return x;
  if (i->opcode() == Opcode::kShiftRightArithmetic) {
    // -1 >> y => -1
    return IsAllOnes(x) ? x : nullptr;
  }
  // x << y => 0   where y is at least the width   (and >>>)
  if (ShiftsOut(y)) return SplatNumber(i, i->shape(), 0);
  return nullptr;
}

}  // namespace

Instruction* LogicRules(Instruction* i) {
  if (IsPred(i)) {
    if (Instruction* simpler = OfPreds(i)) return simpler;
  }
  switch (i->opcode()) {
    case Opcode::kAnd:
    case Opcode::kOr:
      return AndOr(i);
    case Opcode::kXor:
      return Xor(i);
    case Opcode::kNot:
      return Not(i);
    case Opcode::kShiftLeft:
    case Opcode::kShiftRightArithmetic:
    case Opcode::kShiftRightLogical:
      return Shift(i);
    default:
      return nullptr;
  }
}

}  // namespace kiln::passes::simplify

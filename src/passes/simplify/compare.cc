// Orders. A NaN is neither below, above nor equal to anything, itself included.

#include "passes/simplify/facts.h"
#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

bool Holds(Direction direction, const Literal& x, const Literal& y) {
  return VisitKernelType(x.shape().type(), [&](auto zero) {
    using T = decltype(zero);
    T a = x.values<T>()[0], b = y.values<T>()[0];
    switch (direction) {
      case Direction::kEq:
        return a == b;
      case Direction::kNe:
        return a != b;
      case Direction::kGe:
        return a >= b;
      case Direction::kGt:
        return a > b;
      case Direction::kLe:
        return a <= b;
      case Direction::kLt:
        return a < b;
    }
    return false;
  });
}

Instruction* Truth(Instruction* i, bool value) { return SplatNumber(i, i->shape(), value); }

// `if_true` where p holds and `if_false` where not, for a p of i's shape.
Instruction* ByPred(Instruction* i, Instruction* p, bool if_true, bool if_false) {
  if (if_true == if_false) return Truth(i, if_true);
  return if_true ? p : Make(i, Opcode::kNot, {p});
}

// compare(x, x)
Instruction* WithItself(Instruction* i, Direction direction) {
  switch (direction) {
    case Direction::kGt:
    case Direction::kLt:
      // x < x => false,  x > x => false
      return Truth(i, false);
    case Direction::kEq:
    case Direction::kGe:
    case Direction::kLe:
      // x == x => true,  x >= x => true,  x <= x => true   (no floats)
      return IsFloat(i->operand(0)) ? nullptr : Truth(i, true);
    case Direction::kNe:
      // x != x => false   (no floats)
      return IsFloat(i->operand(0)) ? nullptr : Truth(i, false);
  }
  return nullptr;
}

// x < -inf => false,  x > inf => false
// x < 0 => false   where x is not negative   (a NaN is not below 0 either)
bool IsNever(const Instruction* x, Direction direction, const Instruction* c) {
  if (!IsFloat(x)) return false;
  if (direction == Direction::kGt) return IsHighest(c);
  if (direction != Direction::kLt) return false;
  return IsLowest(c) || ((c->IsConstantOf(0.0) || c->IsConstantOf(-0.0)) && IsNonNegative(x));
}

// compare(x, c), c being one repeated constant
Instruction* WithConstant(Instruction* i, Direction direction, const Literal& c) {
  Instruction *x = i->operand(0), *y = i->operand(1);
  if (IsNever(x, direction, y)) return Truth(i, false);
  // p == true => p,  p == false => not p   (and the other comparisons)
  // compare(convert(p), c) => p, not p, true or false   (by the comparisons of 1 and 0)
  Instruction* p = x->opcode() == Opcode::kConvert ? x->operand(0) : x;
  if (IsPred(p)) {
    bool of_one = Holds(direction, Literal::ScalarOf(x->shape().type(), 1), c);
    bool of_zero = Holds(direction, Literal::ScalarOf(x->shape().type(), 0), c);
    return ByPred(i, p, of_one, of_zero);
  }
  // compare(select(p, a, b), c) => p, not p, true or false   where a and b are constants   (by
  // their comparisons)
  if (x->opcode() == Opcode::kSelect && x->operand(0)->shape().SameDimensions(i->shape())) {
    std::optional<Literal> a = SplatOf(x->operand(1)), b = SplatOf(x->operand(2));
    if (a && b) return ByPred(i, x->operand(0), Holds(direction, *a, c), Holds(direction, *b, c));
  }
  bool equality = direction == Direction::kEq || direction == Direction::kNe;
  // x + c == d => x == d - c   (integers; == and != only, since sums wrap)
  if (IsInt(x) && equality && x->opcode() == Opcode::kAdd && IsConstantTerm(x->operand(1))) {
    return Make(i, Opcode::kCompare,
                {x->operand(0), OnConstants(i, Opcode::kSubtract, y, x->operand(1))},
                {{Attr::kDirection, direction}});
  }
  // -x < c => x > -c   (floats; integers: == and != only, since the least one is its own negative)
  if (x->opcode() == Opcode::kNegate && (IsFloat(x) || equality)) {
    return Make(i, Opcode::kCompare, {x->operand(0), OnConstants(i, Opcode::kNegate, y)},
                {{Attr::kDirection, Flipped(direction)}});
  }
  return nullptr;
}

// compare(x, y) => true or false   (integers, where all of x are on one side of all of y)
Instruction* OfRanges(Instruction* i, Direction direction) {
  const Order order = OrderOf(i->operand(0), i->operand(1));
  const bool differ = order.is_less || order.is_greater;
  auto known = [&](bool is_true, bool is_false) {
    return is_true || is_false ? Truth(i, is_true) : nullptr;
  };
  switch (direction) {
    case Direction::kLt:
      return known(order.is_less, order.is_not_less);
    case Direction::kGe:
      return known(order.is_not_less, order.is_less);
    case Direction::kGt:
      return known(order.is_greater, order.is_not_greater);
    case Direction::kLe:
      return known(order.is_not_greater, order.is_greater);
    case Direction::kEq:
      return known(false, differ);
    case Direction::kNe:
      return known(differ, false);
  }
  return nullptr;
}

// max(x, y) > x => y > x,  x > min(x, y) => x > y   (and with <)
Instruction* WithExtremum(Instruction* i, Direction direction) {
  if (direction != Direction::kGt && direction != Direction::kLt) return nullptr;
  for (int64_t k : {0, 1}) {
    Instruction *inner = i->operand(k), *x = i->operand(1 - k);
    // The extremum on the side where it can only win.
    bool greater = (k == 0) == (direction == Direction::kGt);
    if (inner->opcode() != (greater ? Opcode::kMaximum : Opcode::kMinimum)) continue;
    for (int64_t l : {0, 1}) {
      if (inner->operand(l) != x) continue;
      std::vector<Instruction*> operands(i->operands().begin(), i->operands().end());
      operands[static_cast<size_t>(k)] = inner->operand(1 - l);
      return Make(i, Opcode::kCompare, std::move(operands), {{Attr::kDirection, direction}});
    }
  }
  return nullptr;
}

}  // namespace

Instruction* CompareRules(Instruction* i) {
  if (i->opcode() != Opcode::kCompare) return nullptr;
  Instruction *x = i->operand(0), *y = i->operand(1);
  // The rules hold for the order of numbers, which NaNs make partial, not for total orders.
  if (i->attributes().Has(Attr::kOrderType)) return nullptr;
  Direction direction = i->attributes().DirectionOf(Attr::kDirection);
  if (IsSame(x, y)) return WithItself(i, direction);
  if (Instruction* simpler = WithExtremum(i, direction)) return simpler;
  // c < x => x > c   (form)
  if (IsConstantTerm(x) && !WillBeConstant(y)) {
    return Make(i, Opcode::kCompare, {y, x}, {{Attr::kDirection, Flipped(direction)}});
  }
  // -x < -y => x > y   (floats; integers: == and != only)
  bool equality = direction == Direction::kEq || direction == Direction::kNe;
  if (x->opcode() == Opcode::kNegate && y->opcode() == Opcode::kNegate &&
      (IsFloat(x) || equality)) {
    return Make(i, Opcode::kCompare, {x->operand(0), y->operand(0)},
                {{Attr::kDirection, Flipped(direction)}});
  }
  // compare(convert(x), convert(y)) => compare(x, y)   where x and y have one type, and the other
  // type has all its values
  if (x->opcode() == Opcode::kConvert && y->opcode() == Opcode::kConvert &&
      x->operand(0)->shape().type() == y->operand(0)->shape().type() &&
      HoldsAll(x->operand(0)->shape().type(), x->shape().type())) {
    return Make(i, Opcode::kCompare, {x->operand(0), y->operand(0)},
                {{Attr::kDirection, direction}});
  }
  if (std::optional<Literal> c = SplatOf(y); c && !WillBeConstant(x)) {
    if (Instruction* simpler = WithConstant(i, direction, *c)) return simpler;
  }
  return IsInt(x) ? OfRanges(i, direction) : nullptr;
}

}  // namespace kiln::passes::simplify

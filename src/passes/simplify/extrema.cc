// Maximum, minimum and clamp. The result is NaN if an operand is, and +0 is above -0. Maximum and
// minimum are therefore associative and idempotent to the bit, and each has an infinity as its
// neutral element.

#include "passes/simplify/facts.h"
#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

// min(max(x, l), h) => clamp(l, x, h)   where l and h repeat constants, and the inner op has no
// other users
// max(min(x, h), l) => clamp(l, x, h)   likewise, where l < h
Instruction* AsClamp(Instruction* i) {
  bool is_max = i->opcode() == Opcode::kMaximum;
  Instruction *inner = i->operand(0), *bound = i->operand(1);
  if (inner->opcode() != (is_max ? Opcode::kMinimum : Opcode::kMaximum) || !IsUsedOnce(inner)) {
    return nullptr;
  }
  std::optional<Literal> outer_value = SplatOf(bound), inner_value = SplatOf(inner->operand(1));
  if (!outer_value || !inner_value || SplatOf(inner->operand(0))) return nullptr;
  double low = (is_max ? *outer_value : *inner_value).AsDouble(0);
  double high = (is_max ? *inner_value : *outer_value).AsDouble(0);
  // Large integers may round to one double; equal zeros may be -0 above +0. Both are rare.
  if (is_max && !(low < high)) return nullptr;
  Instruction* l = ScalarOf(i, is_max ? bound : inner->operand(1));
  Instruction* h = ScalarOf(i, is_max ? inner->operand(1) : bound);
  return l && h ? Make(i, Opcode::kClamp, {l, inner->operand(0), h}) : nullptr;
}

// max(f(x), f(y)) => f(max(x, y)),  min(f(x), f(y)) => f(min(x, y))   where f is cbrt, exponential,
// logistic or tanh, and has no other users   (f may be wrong in its last bit, and out of order
// there)
Instruction* OfMonotone(Instruction* i) {
  Instruction *x = i->operand(0), *y = i->operand(1);
  switch (x->opcode()) {
    case Opcode::kCbrt:
    case Opcode::kExponential:
    case Opcode::kLogistic:
    case Opcode::kTanh:
      break;
    default:
      return nullptr;
  }
  if (y->opcode() != x->opcode() || !IsUsedOnce(x) || !IsUsedOnce(y)) return nullptr;
  Shape shape = WithType(i->shape(), i->shape().type());
  Instruction* extremum = MakeShaped(i, shape, i->opcode(), {x->operand(0), y->operand(0)});
  return Make(i, x->opcode(), {extremum}, x->attributes());
}

Instruction* Extremum(Instruction* i) {
  bool is_max = i->opcode() == Opcode::kMaximum;
  Instruction *x = i->operand(0), *y = i->operand(1);
  if (IsFloat(i)) {
    // max(x, -inf) => x,  min(x, inf) => x
    if (is_max ? IsLowest(y) : IsHighest(y)) return x;
    // max(x, c) => x   where x is not negative, and c <= 0
    std::optional<Literal> c = is_max ? SplatOf(y) : std::nullopt;
    if (c && c->AsDouble(0) <= 0 && IsNonNegative(x)) return x;
  } else {
    // max(x, y) => x,  min(y, x) => y   (integers, where no element of x is below one of y)
    const Order order = OrderOf(x, y);
    if (order.is_not_less) return is_max ? x : y;
    if (order.is_not_greater) return is_max ? y : x;
    // max(x, min(x, y)) => x,  min(x, max(x, y)) => x   (integers: y may be NaN)
    Opcode mirror = is_max ? Opcode::kMinimum : Opcode::kMaximum;
    for (int64_t k = 0; k < 2; ++k) {
      Instruction *inner = i->operand(k), *other = i->operand(1 - k);
      if (inner->opcode() == mirror &&
          (IsSame(inner->operand(0), other) || IsSame(inner->operand(1), other))) {
        return other;
      }
    }
  }
  // max(-x, -y) => -min(x, y),  min(-x, -y) => -max(x, y)   (floats; the least integer wraps)
  if (IsFloat(i) && x->opcode() == Opcode::kNegate && y->opcode() == Opcode::kNegate &&
      IsUsedOnce(x) && IsUsedOnce(y)) {
    Shape shape = WithType(i->shape(), i->shape().type());
    Opcode mirror = is_max ? Opcode::kMinimum : Opcode::kMaximum;
    return Make(i, Opcode::kNegate, {MakeShaped(i, shape, mirror, {x->operand(0), y->operand(0)})});
  }
  // max(clamp(l, x, h), l) => clamp(l, x, h)   where l and h are constants, and l < h
  // min(clamp(l, x, h), h) => clamp(l, x, h)   likewise
  for (int64_t k : {0, 1}) {
    Instruction *inner = i->operand(k), *bound = i->operand(1 - k);
    if (inner->opcode() != Opcode::kClamp) continue;
    std::optional<Literal> l = SplatOf(inner->operand(0)), h = SplatOf(inner->operand(2));
    std::optional<Literal> value = SplatOf(bound);
    if (!l || !h || !value || !(l->AsDouble(0) < h->AsDouble(0))) continue;
    if (*value == (is_max ? *l : *h)) return inner;
  }
  if (Instruction* simpler = OfMonotone(i)) return simpler;
  return AsClamp(i);
}

Instruction* Clamp(Instruction* i) {
  Instruction *low = i->operand(0), *x = i->operand(1), *high = i->operand(2);
  auto wide = [&](Instruction* bound) {
    Shape shape = WithType(i->shape(), i->shape().type());
    return bound->shape().is_scalar() ? Spread(i, shape, bound) : bound;
  };
  // clamp(least, x, h) => min(x, h),  clamp(l, x, greatest) => max(x, l)
  // clamp(l, x, h) => min(x, h)   (integers, where no element of x is below one of l)
  if (IsLowest(low) || OrderOf(x, low).is_not_less) {
    return Make(i, Opcode::kMinimum, {x, wide(high)});
  }
  // clamp(l, x, h) => max(x, l)   (integers, where no element of x or l is above one of h)
  if (IsHighest(high) || (OrderOf(x, high).is_not_greater && OrderOf(low, high).is_not_greater)) {
    return Make(i, Opcode::kMaximum, {x, wide(low)});
  }
  // clamp(l, clamp(l, x, h), h) => clamp(l, x, h)   (also where l is above h)
  if (x->opcode() == Opcode::kClamp && IsSame(x->operand(0), low) && IsSame(x->operand(2), high)) {
    return x;
  }
  // clamp(c, x, c) => c   (integers: x may be NaN)
  if (!IsFloat(i) && IsSame(low, high)) return wide(low);
  // clamp(spread(l), x, spread(h)) => clamp(l, x, h)
  auto is_spread = [](const Instruction* bound) {
    return bound->opcode() == Opcode::kBroadcast && bound->operand(0)->shape().is_scalar();
  };
  if (is_spread(low) || is_spread(high)) {
    return Make(
        i, Opcode::kClamp,
        {is_spread(low) ? low->operand(0) : low, x, is_spread(high) ? high->operand(0) : high});
  }
  return nullptr;
}

}  // namespace

Instruction* ExtremaAndClamp(Instruction* i) {
  switch (i->opcode()) {
    case Opcode::kMaximum:
    case Opcode::kMinimum:
      return Extremum(i);
    case Opcode::kClamp:
      return Clamp(i);
    default:
      return nullptr;
  }
}

}  // namespace kiln::passes::simplify

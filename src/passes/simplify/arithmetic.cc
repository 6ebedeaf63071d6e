// Sums, differences, products and quotients. x - y has the bits of x + (-y). Rules marked
// "integers" fail for floats: x + 0 is +0 where x is -0, and x * 0 and x - x are NaN for
// infinities.

#include <bit>
#include <cmath>

#include "passes/simplify/facts.h"
#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

bool IsNegate(const Instruction* x) { return x->opcode() == Opcode::kNegate; }

// Whether x is a product with one use.
bool IsOwnProduct(const Instruction* x) {
  return x->opcode() == Opcode::kMultiply && IsUsedOnce(x);
}

// x * a + x * b => x * (a + b),  x * a - x * b => x * (a - b)   (integers)
Instruction* CommonFactor(Instruction* i) {
  Instruction *p = i->operand(0), *q = i->operand(1);
  if (!IsInt(i) || !IsOwnProduct(p) || !IsOwnProduct(q)) return nullptr;
  for (int64_t k : {0, 1}) {
    for (int64_t l : {0, 1}) {
      if (p->operand(k) != q->operand(l)) continue;
      Instruction* rest = MakeShaped(i, WithType(i->shape(), i->shape().type()), i->opcode(),
                                     {p->operand(1 - k), q->operand(1 - l)});
      return Make(i, Opcode::kMultiply, {p->operand(k), rest});
    }
  }
  return nullptr;
}

Instruction* Add(Instruction* i) {
  if (IsPred(i)) return nullptr;
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *x = i->operand(1 - k), *y = i->operand(k);
    // x + 0 => x   (integers; floats where the zero is -0)
    if (y->IsConstantOf(IsInt(i) ? 0.0 : -0.0)) return x;
    // x + -y => x - y
    if (IsNegate(y) && !WillBeConstant(y)) return Make(i, Opcode::kSubtract, {x, y->operand(0)});
    // (c - x) + d => (c + d) - x   (integers)
    if (IsInt(i) && x->opcode() == Opcode::kSubtract && IsConstantTerm(x->operand(0)) &&
        IsConstantTerm(y) && !WillBeConstant(x->operand(1))) {
      return Make(i, Opcode::kSubtract,
                  {OnConstants(i, Opcode::kAdd, x->operand(0), y), x->operand(1)});
    }
    // y + (x - y) => x   (integers)
    if (IsInt(i) && x->opcode() == Opcode::kSubtract && x->operand(1) == y) return x->operand(0);
  }
  return CommonFactor(i);
}

Instruction* Subtract(Instruction* i) {
  Instruction *x = i->operand(0), *y = i->operand(1);
  // x - 0 => x   (floats where the zero is +0)
  if (y->IsConstantOf(0.0)) return x;
  // 0 - x => -x   (floats where the zero is -0)
  if (x->IsConstantOf(IsInt(i) ? 0.0 : -0.0)) return Make(i, Opcode::kNegate, {y});
  // x - -y => x + y
  if (IsNegate(y)) return Make(i, Opcode::kAdd, {x, y->operand(0)});
  if (!IsInt(i)) return nullptr;
  // x - x => 0   (integers)
  if (IsSame(x, y)) return SplatNumber(i, i->shape(), 0);
  // (x + y) - y => x,  (x + y) - x => y   (integers)
  if (x->opcode() == Opcode::kAdd) {
    for (int64_t k = 0; k < 2; ++k) {
      if (x->operand(k) == y) return x->operand(1 - k);
    }
  }
  // (x - y) - x => -y   (integers)
  if (x->opcode() == Opcode::kSubtract && x->operand(0) == y) {
    return Make(i, Opcode::kNegate, {x->operand(1)});
  }
  // x - (x - y) => y   (integers)
  if (y->opcode() == Opcode::kSubtract && y->operand(0) == x) return y->operand(1);
  // x - c => x + -c   (integers; form: constants meet in sums)
  if (IsConstantTerm(y) && !WillBeConstant(x)) {
    return Make(i, Opcode::kAdd, {x, OnConstants(i, Opcode::kNegate, y)});
  }
  return CommonFactor(i);
}

Instruction* Negate(Instruction* i) {
  Instruction* x = i->operand(0);
  // --x => x
  if (IsNegate(x)) return x->operand(0);
  // -(x - y) => y - x   (integers; for floats 0 would become -0)
  if (IsInt(i) && x->opcode() == Opcode::kSubtract) {
    return Make(i, Opcode::kSubtract, {x->operand(1), x->operand(0)});
  }
  // -(x * c) => x * -c
  // -(x / c) => x / -c   where the quotient has no other users   (floats; integers: the least one
  // divided by -c wraps)
  bool divides = x->opcode() == Opcode::kDivide && IsFloat(i) && IsUsedOnce(x);
  if ((x->opcode() == Opcode::kMultiply || divides) && IsConstantTerm(x->operand(1)) &&
      !WillBeConstant(x->operand(0))) {
    return Make(i, x->opcode(), {x->operand(0), OnConstants(i, Opcode::kNegate, x->operand(1))});
  }
  return nullptr;
}

// Negations leave products and quotients of floats without a change of bits, and products of
// integers, which wrap.
Instruction* Signs(Instruction* i) {
  Instruction *x = i->operand(0), *y = i->operand(1);
  if (!IsNegate(x)) return nullptr;
  // -x * -y => x * y,  -x / -y => x / y
  if (IsNegate(y)) return Make(i, i->opcode(), {x->operand(0), y->operand(0)});
  // -x * c => x * -c,  -x / c => x / -c
  if (IsConstantTerm(y) && !WillBeConstant(x)) {
    return Make(i, i->opcode(), {x->operand(0), OnConstants(i, Opcode::kNegate, y)});
  }
  return nullptr;
}

// The pred converted by x, or null.
Instruction* AsPred(const Instruction* x) {
  return x->opcode() == Opcode::kConvert && IsPred(x->operand(0)) ? x->operand(0) : nullptr;
}

// Products of a root with itself.
Instruction* OfRoot(Instruction* i, const Instruction* root) {
  if (!IsNonNegative(root->operand(0))) return nullptr;
  // sqrt(x) * sqrt(x) => x   where x is not negative   (the product is rounded twice)
  if (root->opcode() == Opcode::kSqrt) return root->operand(0);
  // rsqrt(x) * rsqrt(x) => 1 / x   where x is not negative, and the root has no other users
  // (rounded once)
  bool own = root->users().size() == 1 && !root->IsRoot();
  if (root->opcode() != Opcode::kRsqrt || !own) return nullptr;
  Shape shape = WithType(i->shape(), i->shape().type());
  return Make(i, Opcode::kDivide, {SplatNumber(i, shape, 1), root->operand(0)});
}

Instruction* Multiply(Instruction* i) {
  if (IsPred(i)) return nullptr;
  Instruction *x = i->operand(0), *y = i->operand(1);
  // x * 1 => x
  if (y->IsConstantOf(1.0)) return x;
  // x * 0 => 0   (integers; floats where x is finite and not negative)
  if (y->IsConstantOf(0.0) && (IsInt(i) || (IsFinite(x) && IsNonNegative(x)))) {
    return y;
  }
  // x * -1 => -x
  if (y->IsConstantOf(-1.0)) return Make(i, Opcode::kNegate, {x});
  // |x| * |x| => x * x   (real numbers; the least integer wraps in both)
  if (x == y && x->opcode() == Opcode::kAbs && !IsComplex(x->operand(0)->shape().type())) {
    return Make(i, Opcode::kMultiply, {x->operand(0), x->operand(0)});
  }
  if (x == y && (x->opcode() == Opcode::kSqrt || x->opcode() == Opcode::kRsqrt)) {
    if (Instruction* simpler = OfRoot(i, x)) return simpler;
  }
  // convert(p) * x => select(p, x, 0)   where p is a pred, and the conversion has no other users
  // (integers)
  for (int64_t k : {0, 1}) {
    Instruction *p = AsPred(i->operand(k)), *other = i->operand(1 - k);
    if (!p || !IsInt(i) || !IsUsedOnce(i->operand(k))) continue;
    Shape shape = WithType(i->shape(), i->shape().type());
    return Make(i, Opcode::kSelect, {p, other, SplatNumber(i, shape, 0)});
  }
  return Signs(i);
}

// 1 / c where it is exact: c is a power of two, and the type has its reciprocal. Then x / c and x *
// (1 / c) round the same number.
std::optional<Literal> ExactReciprocal(const Instruction* c) {
  std::optional<Literal> splat = SplatOf(c);
  if (!splat || !IsFloat(c)) return std::nullopt;
  bool exact = false;
  Literal result = *splat;
  VisitKernelType(splat->shape().type(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (FloatType<T>) {
      double value = static_cast<double>(splat->values<T>()[0]), reciprocal = 1 / value;
      int exponent = 0;
      T rounded = static_cast<T>(reciprocal);
      exact = std::isfinite(value) && std::isfinite(reciprocal) && reciprocal != 0 &&
              static_cast<double>(rounded) == reciprocal &&
              std::abs(std::frexp(value, &exponent)) == 0.5;
      result.values<T>()[0] = rounded;
    }
  });
  return exact ? std::optional(result) : std::nullopt;
}

// Quotients of integers.
Instruction* OfIntegers(Instruction* i) {
  Instruction *x = i->operand(0), *y = i->operand(1);
  // x / c => 0   (integers, where 0 <= x < c)
  if (IsBelow(x, y)) return SplatNumber(i, i->shape(), 0);
  std::optional<int64_t> exponent = PowerOfTwo(y);
  if (!exponent || WillBeConstant(x)) return nullptr;
  Shape shape = WithType(i->shape(), i->shape().type());
  auto bits = [&](int64_t n) { return SplatNumber(i, shape, static_cast<double>(n)); };
  // x / 2^n => x >> n   (integers, where x is not negative)
  if (IsNonNegative(x)) return Make(i, Opcode::kShiftRightLogical, {x, bits(*exponent)});
  // x / 2^n => (x + ((x >> w - 1) >>> w - n)) >> n   (integers of w bits: the sum adds 2^n - 1 to
  // negative x)
  Instruction* bias = RoundingBias(i, x, *exponent);
  return Make(i, Opcode::kShiftRightArithmetic,
              {MakeShaped(i, shape, Opcode::kAdd, {x, bias}), bits(*exponent)});
}

Instruction* Divide(Instruction* i) {
  Instruction *x = i->operand(0), *y = i->operand(1);
  // x / 1 => x
  if (y->IsConstantOf(1.0)) return x;
  // x / -1 => -x   (the least integer wraps in both)
  if (y->IsConstantOf(-1.0)) return Make(i, Opcode::kNegate, {x});
  if (!IsFloat(i)) return OfIntegers(i);
  // x / c => x * (1/c)   where 1/c is exact
  if (std::optional<Literal> reciprocal = ExactReciprocal(y)) {
    Shape shape = WithType(y->shape(), y->shape().type());
    return Make(i, Opcode::kMultiply, {x, Splat(i, shape, *reciprocal)});
  }
  // x / rsqrt(y) => x * sqrt(y)   where the root has no other users   (rounded as often; sqrt is
  // correctly rounded)
  if (y->opcode() == Opcode::kRsqrt && IsUsedOnce(y)) {
    Shape shape = WithType(i->shape(), i->shape().type());
    return Make(i, Opcode::kMultiply, {x, MakeShaped(i, shape, Opcode::kSqrt, {y->operand(0)})});
  }
  return Signs(i);
}

}  // namespace

Instruction* AddAndSubtract(Instruction* i) {
  switch (i->opcode()) {
    case Opcode::kAdd:
      return Add(i);
    case Opcode::kSubtract:
      return Subtract(i);
    case Opcode::kNegate:
      return Negate(i);
    default:
      return nullptr;
  }
}

Instruction* MultiplyAndDivide(Instruction* i) {
  if (i->opcode() == Opcode::kMultiply) return Multiply(i);
  if (i->opcode() == Opcode::kDivide) return Divide(i);
  return nullptr;
}

}  // namespace kiln::passes::simplify

#include "passes/simplify/facts.h"
#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

// power(x, n) => power(x * x, n / 2)   (times x for odd n; integers, n up to 32)
Instruction* OfIntegers(Instruction* i) {
  std::optional<Literal> splat = SplatOf(i->operand(1));
  if (!splat || WillBeConstant(i->operand(0))) return nullptr;
  int64_t n = splat->AsInt(0);
  if (n < 2 || n > 32) return nullptr;
  Shape shape = WithType(i->shape(), i->shape().type());
  Instruction *result = nullptr, *square = i->operand(0);
  for (; n > 0; n >>= 1) {
    if (n & 1) {
      result = result ? MakeShaped(i, shape, Opcode::kMultiply, {result, square}) : square;
    }
    if (n > 1) square = MakeShaped(i, shape, Opcode::kMultiply, {square, square});
  }
  return result;
}

Instruction* Power(Instruction* i) {
  Instruction *x = i->operand(0), *y = i->operand(1);
  // power(x, 0) => 1,  power(1, y) => 1   (NaN to the power of 0 is 1, as in C)
  if (y->IsConstantOf(0.0) || y->IsConstantOf(-0.0) || x->IsConstantOf(1.0)) {
    return SplatNumber(i, i->shape(), 1);
  }
  // power(x, 1) => x
  if (y->IsConstantOf(1.0)) return x;
  // power(x, 2) => x * x   (rounded once)
  if (y->IsConstantOf(2.0)) return Make(i, Opcode::kMultiply, {x, x});
  Shape shape = WithType(i->shape(), i->shape().type());
  auto product = [&](Instruction* a, Instruction* b) {
    return MakeShaped(i, shape, Opcode::kMultiply, {a, b});
  };
  // power(x, 3) => x * x * x   (floats: rounded twice, by half an ULP each)
  if (y->IsConstantOf(3.0)) return Make(i, Opcode::kMultiply, {product(x, x), x});
  // power(x, 4) => (x * x) * (x * x)   (floats: rounded twice, the first error doubled; a subnormal
  // or infinite x * x gives the right 0 or infinity)
  if (y->IsConstantOf(4.0)) {
    Instruction* square = product(x, x);
    return Make(i, Opcode::kMultiply, {square, square});
  }
  if (IsInt(i)) return OfIntegers(i);
  // power(x, 0.5) => sqrt(x),  power(x, -0.5) => rsqrt(x)   where x is not negative   (floats; they
  // differ at -0 and -inf)
  if (IsNonNegative(x)) {
    if (y->IsConstantOf(0.5)) return Make(i, Opcode::kSqrt, {x});
    if (y->IsConstantOf(-0.5)) return Make(i, Opcode::kRsqrt, {x});
  }
  // power(x, -1) => 1 / x   (floats; rounded once. power(x, -2) stays: x * x may overflow where the
  // result is above 0.)
  if (y->IsConstantOf(-1.0)) {
    return Make(i, Opcode::kDivide, {SplatNumber(i, shape, 1), x});
  }
  return nullptr;
}

// (x + c) % d => x % d   where c is a multiple of d, x is not negative, and the sum does not
// overflow (integers)
Instruction* OfSum(Instruction* i) {
  const Instruction* x = i->operand(0);
  if (x->opcode() != Opcode::kAdd || BitWidth(i->shape().type()) > 32) return nullptr;
  std::optional<Literal> c = SplatOf(x->operand(1)), d = SplatOf(i->operand(1));
  std::optional<int64_t> largest = LargestValue(x->operand(0));
  if (!c || !d || !largest || c->AsInt(0) < 0 || d->AsInt(0) <= 0) return nullptr;
  int64_t bits = BitWidth(i->shape().type()) - (IsSigned(i) ? 1 : 0);
  if (c->AsInt(0) % d->AsInt(0) != 0 || *largest + c->AsInt(0) >= int64_t{1} << bits) {
    return nullptr;
  }
  return Make(i, Opcode::kRemainder, {x->operand(0), i->operand(1)});
}

Instruction* Remainder(Instruction* i) {
  Instruction *x = i->operand(0), *y = i->operand(1);
  // (x % y) % y => x % y   (a remainder is smaller than y, or x where an integer y is 0)
  if (x->opcode() == Opcode::kRemainder && IsSame(x->operand(1), y)) return x;
  if (!IsInt(i)) return nullptr;
  // x % 1 => 0,  x % -1 => 0,  x % x => 0,  0 % x => 0   (integers: 0 % 0 is 0)
  if (y->IsConstantOf(1.0) || y->IsConstantOf(-1.0) || IsSame(x, y) || x->IsConstantOf(0.0)) {
    return SplatNumber(i, i->shape(), 0);
  }
  // x % c => x   (integers, where 0 <= x < c)
  if (IsBelow(x, y)) return x;
  if (Instruction* simpler = OfSum(i)) return simpler;
  std::optional<int64_t> exponent = PowerOfTwo(y);
  if (!exponent || WillBeConstant(x)) return nullptr;
  Shape shape = WithType(i->shape(), i->shape().type());
  Literal mask = *SplatOf(y);
  VisitKernelType(shape.type(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::integral<T>) mask.values<T>()[0] = static_cast<T>(mask.values<T>()[0] - 1);
  });
  // x % 2^n => x and 2^n - 1   (integers, where x is not negative)
  if (IsNonNegative(x)) return Make(i, Opcode::kAnd, {x, Splat(i, shape, std::move(mask))});
  // x % 2^n => ((x + b) and 2^n - 1) - b   where b = (x >> w - 1) >>> w - n   (integers of w bits)
  Instruction* bias = RoundingBias(i, x, *exponent);
  Instruction* sum = MakeShaped(i, shape, Opcode::kAdd, {x, bias});
  Instruction* low = MakeShaped(i, shape, Opcode::kAnd, {sum, Splat(i, shape, std::move(mask))});
  return Make(i, Opcode::kSubtract, {low, bias});
}

// log(sqrt(x)) => log(x) * 0.5   where the root has no other users   (one rounding less)
// log(rsqrt(x)) => log(x) * -0.5   likewise, where x is not negative   (they differ at -0)
Instruction* Log(Instruction* i) {
  const Instruction* root = i->operand(0);
  bool inverse = root->opcode() == Opcode::kRsqrt;
  if ((!inverse && root->opcode() != Opcode::kSqrt) || !IsUsedOnce(root)) return nullptr;
  if (inverse && !IsNonNegative(root->operand(0))) return nullptr;
  Shape shape = WithType(i->shape(), i->shape().type());
  Instruction* log = MakeShaped(i, shape, Opcode::kLog, {root->operand(0)}, i->attributes());
  return Make(i, Opcode::kMultiply, {log, SplatNumber(i, shape, inverse ? -0.5 : 0.5)});
}

}  // namespace

Instruction* PowersAndRemainders(Instruction* i) {
  if (i->opcode() == Opcode::kLog) return Log(i);
  if (i->opcode() == Opcode::kPower) return Power(i);
  if (i->opcode() == Opcode::kRemainder) return Remainder(i);
  return nullptr;
}

}  // namespace kiln::passes::simplify

// Hurwitz's zeta function, and the derivatives of digamma, which it is up to a factor:
//   psi_n(x) = (-1)^(n + 1) n! zeta(n + 1, x)
//
// For q > 0, with a = q + n that is large (Euler's and Maclaurin's formula),
//   zeta(s, q) = sum_{k < n} (q + k)^-s + a^(1 - s) (1 / (s - 1) + 1 / (2a) + sum B_2j / (2j)!
//   s (s + 1) ... (s + 2j - 2) a^(-2j))
// A factor is given by its logarithm, and multiplies every power on its way: neither it nor what is
// multiplied need be numbers of the type where the product is.
//
// f64 has powers as precise as those of pow, with what rounding takes off q + k made good, which
// would count s times. f32 is computed in doubles.

#include <cmath>

#include "codegen/control_flow.h"
#include "codegen/math/math.h"
#include "codegen/math/pairs.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

// Numbers of Bernoulli by the factorials of their index: B_2 / 2!, B_4 / 4!, ...
constexpr double kBernoulli[] = {1.0 / 12,
                                 -1.0 / 720,
                                 1.0 / 30240,
                                 -1.0 / 1209600,
                                 1.0 / 47900160,
                                 -691.0 / 1307674368000,
                                 1.0 / 74724249600,
                                 -3617.0 / 10670622842880000,
                                 43867.0 / 5109094217170944000,
                                 -174611.0 / 802857662698291200000.0,
                                 77683.0 / 14101100039391805440000.0,
                                 -236364091.0 / 1693824136731743669452800000.0};

// With terms up to a = max(least, 2 s) the first number that is left out is nothing: 2^-58 of the
// rest, and 2^-32 for f32.
struct Precision {
  double least;
  int numbers;
  double nothing;  // terms that are smaller, beside the sum, end it
};
constexpr Precision kF64 = {12, 12, 0x1p-60};
constexpr Precision kF32 = {6, 6, 0x1p-36};
// No sum has that many terms unless rounding keeps q + 1 at q; then any number will do.
constexpr double kMostTerms = 160;
// The exponent of two by which sums are moved.
constexpr int kMove = 128;
// Exponents, and orders, that are larger do no more.
constexpr double kLargest = 0x1p80;

// Repeats `body` while its result holds in any lane; returns the final values.
template <typename Body>
Values Repeat(llvm::IRBuilderBase& b, const Values& init, Body body) {
  auto goes_on = [&](Values& values) -> Value* {
    Value* lanes = body(values);
    return lanes->getType()->isVectorTy() ? b.CreateOrReduce(lanes) : lanes;
  };
  return EmitDoWhile(b, init, goes_on, {.name = "zeta.loop", .after = "zeta.done"});
}

}  // namespace

// Whether a whole number is odd.
Value* MathEmitter::IsOddWhole(Value* whole) {
  Value* half = b_.CreateFMul(whole, Number(whole, 0.5));
  return b_.CreateFCmpONE(b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, half), half);
}

// Of a whole number that is not below 0: the logarithm of the factorial itself, which is a double
// up to 22!, and Stirling's series above.
FloatPair MathEmitter::LogOfFactorial(Value* n, bool precise) {
  PairArithmetic pairs(b_, options_.has_fma);
  Value *one = Number(n, 1.0), *factorial = one;
  for (int k = 2; k <= 22; ++k) {
    Value* factor = Number(n, k);
    factorial = b_.CreateFMul(factorial, b_.CreateSelect(b_.CreateFCmpOGE(n, factor), factor, one));
  }
  Value* small = b_.CreateFCmpOLE(n, Number(n, 22.0));
  Value* of = b_.CreateSelect(small, factorial, n);
  Value* inverse = b_.CreateFDiv(one, n);
  Value* series =
      Polynomial(b_.CreateFMul(inverse, inverse),
                 {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360});
  series = b_.CreateFMul(series, inverse);
  Value* and_half = b_.CreateFAdd(n, Number(n, 0.5));
  constexpr double kHalfLogTwoPi = 0x1.d67f1c864beb5p-1, kRest = -0x1.65b5a1b7ff5dfp-55;
  if (!precise) {
    Value* log = Log(of);
    Value* large = b_.CreateFAdd(b_.CreateFSub(b_.CreateFMul(and_half, log), n),
                                 b_.CreateFAdd(series, Number(n, kHalfLogTwoPi)));
    return {b_.CreateSelect(small, log, large), Number(n, 0.0)};
  }
  Value* zero = Number(n, 0.0);
  FloatPair log = LogInHundredBits(of);
  FloatPair large = pairs.Multiply(log, {and_half, zero});
  large = pairs.Add(large, {b_.CreateFNeg(n), zero});
  large = pairs.Add(large, {Number(n, kHalfLogTwoPi), Number(n, kRest)});
  large = pairs.Add(large, {series, zero});
  return {b_.CreateSelect(small, log.high, large.high), b_.CreateSelect(small, log.low, large.low)};
}

// log(e^factor (q + n)^-s).
FloatPair MathEmitter::HurwitzPower(Value* s, Value* q, Value* n, FloatPair factor, bool precise) {
  if (!precise) {
    Value* log = Log(b_.CreateFAdd(q, n));
    return {b_.CreateFSub(factor.high, b_.CreateFMul(s, log)), factor.low};
  }
  PairArithmetic pairs(b_, options_.has_fma);
  FloatPair a = pairs.Sum(q, n);
  FloatPair log = LogInHundredBits(a.high);
  log.low = b_.CreateFAdd(log.low, b_.CreateFDiv(a.low, a.high));
  FloatPair power = pairs.Multiply(log, {b_.CreateFNeg(s), Number(s, 0.0)});
  return pairs.Add(factor, power);
}

// e^factor zeta(s, q) for finite q > 0 and s > 1; of others it is any number, but it ends.
Value* MathEmitter::HurwitzSum(Value* s, Value* q, FloatPair factor, bool precise) {
  PairArithmetic pairs(b_, options_.has_fma);
  const Precision& p = precise ? kF64 : kF32;
  Value *zero = Number(s, 0.0), *one = Number(s, 1.0);
  Value* twice = b_.CreateFAdd(s, s);
  Value* least = Number(s, p.least);
  Value* end = b_.CreateSelect(b_.CreateFCmpOGT(twice, least), twice, least);
  // Next to the ends of the type's range what is summed up is moved to its middle: terms would be
  // rounded as subnormal numbers, and the power that is the integral may overflow where the sum,
  // which is smaller, does not.
  Value *up = nullptr, *down = nullptr;
  if (precise) {
    Value* first = b_.CreateFSub(factor.high, b_.CreateFMul(s, Log(q)));
    up = b_.CreateFCmpOLT(first, Number(s, -500.0));
    down = b_.CreateFCmpOGT(first, Number(s, 500.0));
    auto by = [&](double move) {
      return b_.CreateSelect(up, Number(s, move), b_.CreateSelect(down, Number(s, -move), zero));
    };
    factor =
        pairs.Add(factor, {by(kMove * 0x1.62e42fefa39efp-1), by(kMove * 0x1.abc9e3b39803fp-56)});
  }
  // The terms fall, so that the sum is the larger one of the two that are added. Its rest is lost
  // to f32.
  auto add = [&](Value* sum, Value* rest, Value* term) -> FloatPair {
    if (!precise) return {b_.CreateFAdd(sum, term), rest};
    FloatPair both = pairs.FastSum(sum, term);
    return {both.high, b_.CreateFAdd(rest, both.low)};
  };
  Value* active = b_.CreateFCmpOLT(q, end);
  std::vector<Value*> values = Repeat(b_, {zero, zero, zero, active}, [&](std::vector<Value*>& at) {
    Value *n = at[0], *going = at[3];
    FloatPair power = HurwitzPower(s, q, n, factor, precise);
    Value* term = precise ? ExpOfPair(power) : Exp(power.high);
    FloatPair sum = add(at[1], at[2], term);
    Value* next = b_.CreateFAdd(n, one);
    // Next to 1 small terms are many.
    Value* counts = b_.CreateFCmpOGT(term, b_.CreateFMul(sum.high, Number(s, p.nothing)));
    counts = b_.CreateOr(counts, b_.CreateFCmpOLT(s, Number(s, 2.0)));
    Value* left = b_.CreateAnd(b_.CreateFCmpOLT(b_.CreateFAdd(q, next), end),
                               b_.CreateFCmpOLT(next, Number(s, kMostTerms)));
    at[0] = b_.CreateSelect(going, next, n);
    at[1] = b_.CreateSelect(going, sum.high, at[1]);
    at[2] = b_.CreateSelect(going, sum.low, at[2]);
    return at[3] = b_.CreateAnd(going, b_.CreateAnd(counts, left));
  });
  Value *n = values[0], *sum = values[1], *rest = values[2];
  Value* a = b_.CreateFAdd(q, n);
  // s (s + 1) ... (s + 2j - 2) a^(-2j), from j = 1 on.
  Value* inverse = b_.CreateFDiv(one, a);
  Value* factors = b_.CreateFMul(b_.CreateFMul(s, inverse), inverse);
  Value* series = b_.CreateFMul(factors, Number(s, kBernoulli[0]));
  for (int j = 1; j < p.numbers; ++j) {
    for (int k = 2 * j - 1; k <= 2 * j; ++k) {
      factors = b_.CreateFMul(factors, b_.CreateFMul(b_.CreateFAdd(s, Number(s, k)), inverse));
    }
    series = MulAdd(factors, Number(s, kBernoulli[j]), series);
  }
  series = MulAdd(inverse, Number(s, 0.5), series);
  Value* less_one = b_.CreateFSub(s, one);
  Value* parts = b_.CreateFAdd(b_.CreateFDiv(one, less_one), series);
  FloatPair power = HurwitzPower(less_one, q, n, factor, precise);
  Value* tail = b_.CreateFMul(precise ? ExpOfPair(power) : Exp(power.high), parts);
  Value* ended = b_.CreateFCmpOLT(a, end);
  Value* whole = sum;
  if (precise) {
    // Of an infinite sum the rest is no number.
    FloatPair both = pairs.Sum(sum, tail);
    whole = b_.CreateFAdd(both.high, b_.CreateFAdd(both.low, rest));
    Value* finite = b_.CreateFCmpOLT(both.high, llvm::ConstantFP::getInfinity(s->getType()));
    whole = b_.CreateSelect(finite, whole, both.high);
    Value* infinite = b_.CreateFCmpOEQ(sum, llvm::ConstantFP::getInfinity(s->getType()));
    sum = b_.CreateSelect(infinite, sum, b_.CreateFAdd(sum, rest));
  } else {
    whole = b_.CreateFAdd(sum, tail);
  }
  whole = b_.CreateSelect(ended, sum, whole);
  if (!precise) return whole;
  Value* back = b_.CreateSelect(up, Number(s, std::ldexp(1, -kMove)),
                                b_.CreateSelect(down, Number(s, std::ldexp(1, kMove)), one));
  return b_.CreateFMul(whole, back);
}

// e^factor zeta(s, q). The sum over all whole k, also below 0, is the same for q and for its
// distance d from the next whole number; what it has more than zeta is zeta(s, 1 - q), with the
// sign of (-1)^s. Of the two signs at d and 1 - d the one below 0 has it, too.
Value* MathEmitter::ZetaTimes(Value* s, Value* q, FloatPair factor, bool precise) {
  Value *zero = Number(s, 0.0), *one = Number(s, 1.0), *minus_one = Number(s, -1.0);
  llvm::Type* type = s->getType();
  Value* infinity = llvm::ConstantFP::getInfinity(type);
  Value* positive = b_.CreateFCmpOGT(q, zero);
  Value* a = Abs(q);
  Value* distance = FromNearestWhole(a);
  // An infinity has none.
  Value* whole = b_.CreateFCmpUEQ(distance, zero);
  Value* limited =
      b_.CreateSelect(b_.CreateFCmpOGT(s, Number(s, kLargest)), Number(s, kLargest), s);
  Value* odd = b_.CreateOr(IsOddWhole(limited), b_.CreateFCmpOEQ(s, infinity));
  Value* sign = b_.CreateSelect(odd, minus_one, one);
  Value* down = b_.CreateFCmpOGT(distance, zero);  // q is below the nearest whole number
  Value* d = Abs(distance);
  Value* sums = b_.CreateAnd(b_.CreateNot(positive), b_.CreateNot(whole));
  auto operand = [&](Value* of_sums, Value* of_positive) {
    return b_.CreateSelect(sums, of_sums, of_positive);
  };
  Value* usable = b_.CreateAnd(positive, b_.CreateFCmpOLT(q, infinity));
  Value* first = operand(d, b_.CreateSelect(usable, q, one));
  Value* second = operand(b_.CreateFSub(one, d), one);
  Value* third = operand(b_.CreateFSub(one, q), one);
  Value* first_sign = operand(b_.CreateSelect(down, sign, one), one);
  Value* second_sign = b_.CreateSelect(down, one, sign);
  Value* third_sign = b_.CreateFNeg(sign);
  Value* any_sums = sums->getType()->isVectorTy() ? b_.CreateOrReduce(sums) : sums;
  Value* passes = b_.CreateSelect(any_sums, b_.getInt32(3), b_.getInt32(1));
  std::vector<Value*> values = Repeat(b_, {b_.getInt32(0), zero}, [&](std::vector<Value*>& at) {
    Value* is_first = b_.CreateICmpEQ(at[0], b_.getInt32(0));
    Value* is_second = b_.CreateICmpEQ(at[0], b_.getInt32(1));
    auto by_pass = [&](Value* x, Value* y, Value* z) {
      return b_.CreateSelect(is_first, x, b_.CreateSelect(is_second, y, z));
    };
    Value* part = HurwitzSum(limited, by_pass(first, second, third), factor, precise);
    Value* sum =
        b_.CreateFAdd(at[1], b_.CreateFMul(part, by_pass(first_sign, second_sign, third_sign)));
    // Only the nearest pole makes an infinity.
    Value* done = b_.CreateOr(b_.CreateNot(sums), b_.CreateFCmpOEQ(Abs(at[1]), infinity));
    at[1] = b_.CreateSelect(is_first, sum, b_.CreateSelect(done, at[1], sum));
    at[0] = b_.CreateAdd(at[0], b_.getInt32(1));
    return b_.CreateICmpULT(at[0], passes);
  });
  Value *result = values[1], *nan = llvm::ConstantFP::getNaN(type);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(q, infinity), zero, result);
  // What is no whole number has no sums; at a pole they are infinite if they are of one sign.
  Value* even = b_.CreateNot(odd);
  Value* s_whole = b_.CreateFCmpOEQ(b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, s), s);
  Value* at_pole = b_.CreateSelect(even, infinity, nan);
  Value* of_rest = b_.CreateSelect(whole, at_pole, result);
  of_rest = b_.CreateSelect(b_.CreateAnd(s_whole, b_.CreateFCmpOLT(s, infinity)), of_rest, nan);
  result = b_.CreateSelect(positive, result, of_rest);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(s, one), infinity, result);
  Value* invalid = b_.CreateOr(b_.CreateFCmpULT(s, one), b_.CreateFCmpUNO(q, q));
  return b_.CreateSelect(invalid, nan, result);
}

Value* MathEmitter::Zeta(Value* s, Value* q) {
  llvm::Type* type = s->getType();
  bool wide = IsDouble(s);
  if (!wide) {
    s = b_.CreateFPExt(s, DoubleLike(s));
    q = b_.CreateFPExt(q, s->getType());
  }
  Value* zero = Number(s, 0.0);
  Value* result = ZetaTimes(s, q, {zero, zero}, wide);
  return wide ? result : b_.CreateFPTrunc(result, type);
}

Value* MathEmitter::Polygamma(Value* order, Value* x) {
  llvm::Type* type = order->getType();
  bool wide = IsDouble(order);
  Value* digamma = Digamma(x);
  if (!wide) {
    order = b_.CreateFPExt(order, DoubleLike(order));
    x = b_.CreateFPExt(x, order->getType());
    digamma = b_.CreateFPExt(digamma, order->getType());
  }
  Value *zero = Number(order, 0.0), *one = Number(order, 1.0);
  Value* nan = llvm::ConstantFP::getNaN(order->getType());
  Value* infinity = llvm::ConstantFP::getInfinity(order->getType());
  // A NaN is no number below any.
  Value* n = b_.CreateSelect(b_.CreateFCmpOGE(order, zero), order, zero);
  n = b_.CreateSelect(b_.CreateFCmpOLT(n, Number(n, kLargest)), n, Number(n, kLargest));
  Value* zeta = ZetaTimes(b_.CreateFAdd(n, one), x, LogOfFactorial(n, wide), wide);
  Value* result = b_.CreateSelect(IsOddWhole(n), zeta, b_.CreateFNeg(zeta));
  result = b_.CreateSelect(b_.CreateFCmpOEQ(order, zero), digamma, result);
  Value* whole = b_.CreateFCmpOEQ(b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, order), order);
  Value* valid = b_.CreateAnd(b_.CreateFCmpOGE(order, zero), b_.CreateFCmpOLT(order, infinity));
  valid = b_.CreateAnd(b_.CreateAnd(valid, whole), b_.CreateFCmpORD(x, x));
  result = b_.CreateSelect(valid, result, nan);
  return wide ? result : b_.CreateFPTrunc(result, type);
}

}  // namespace kiln::codegen

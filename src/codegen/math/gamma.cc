// The logarithm of the gamma function and its derivative.
//
// From 5/2 (9/4) on Stirling's series is a polynomial in 1 / x^2, by Sollya's fpminimax; below, x
// is moved by whole numbers into an interval of length 1 where a polynomial does, with one factor
// for the function's zero there. x < 0 is reflected: what it takes of pi x is taken of the distance
// from the next whole number, which is exact.
//
// f32 is computed in doubles, with polynomials for its precision. In f64 sums are kept in twice the
// precision, as parts of them cancel next to the zeros below 0.

#include "codegen/math/math.h"
#include "codegen/math/pairs.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

constexpr double kHalfLogTwoPi = 0x1.d67f1c864beb5p-1, kHalfLogTwoPiRest = -0x1.65b5a1b7ff5dfp-55;
// Where digamma is 0: the first part has 41 bits, so that differences with it are exact.
constexpr double kDigammaRoot = 0x1.762d86356cp0, kDigammaRootRest = -0x1.c091e563779a2p-44;

}  // namespace

// log(x) of a number above 0, within 2^-59 of it: log(2^k m) = k ln2 + 2 s + s^3 (2/3 + ...),
// s = (m - 1) / (m + 1), where s and the sum are pairs. Of 0, an infinity or a NaN it is any
// number.
FloatPair MathEmitter::LogInTwo(Value* x) {
  PairArithmetic pairs(b_, options_.has_fma);
  Value* small = b_.CreateFCmpOLT(x, Number(x, 0x1p-1022));
  Value* scaled = b_.CreateSelect(small, b_.CreateFMul(x, Number(x, 0x1p54)), x);
  Value* power = b_.CreateSelect(small, Number(x, -54.0), Number(x, 0.0));
  uint64_t root = 0x3fe6a09e667f3bcdull;  // of 1/2, as in LogOfNormal
  Value* bits = b_.CreateSub(b_.CreateBitCast(scaled, IntegerType(x)), Integer(x, root));
  Value* k =
      b_.CreateFAdd(b_.CreateSIToFP(b_.CreateAShr(bits, Integer(x, 52)), x->getType()), power);
  Value* m = b_.CreateBitCast(
      b_.CreateAdd(b_.CreateAnd(bits, Integer(x, 0x000fffffffffffffull)), Integer(x, root)),
      x->getType());
  Value* one = Number(x, 1.0);
  FloatPair s = pairs.Divide(b_.CreateFSub(m, one), pairs.Sum(m, one));
  Value* z = b_.CreateFMul(s.high, s.high);
  Value* series =
      Polynomial(z, {6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                     2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                     1.479819860511658591e-01});
  Value* twice = b_.CreateFAdd(s.high, s.high);
  Value* rest = MulAdd(b_.CreateFMul(s.high, z), series, b_.CreateFAdd(s.low, s.low));
  // k times the upper part of ln2 is exact.
  FloatPair sum = pairs.FastSum(b_.CreateFMul(k, Number(x, 6.93147180369123816490e-01)), twice);
  rest = b_.CreateFAdd(MulAdd(k, Number(x, 1.90821492927058770002e-10), rest), sum.low);
  sum = pairs.FastSum(sum.high, rest);
  return {sum.high, sum.low};
}

// The distance of a, not below 0, from the nearest integer.
Value* MathEmitter::FromNearestWhole(Value* a) {
  Value* fraction = b_.CreateFSub(a, b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, a));
  Value* above = b_.CreateFCmpOGT(fraction, Number(a, 0.5));
  return b_.CreateSelect(above, b_.CreateFSub(fraction, Number(a, 1.0)), fraction);
}

// lgamma(x) = base + factor log(product), for which x below 0 has 1 - x:
//   from 5/2 on  (x -+ 1/2) log(x) - x + log(2 pi) / 2 + W(1/x^2) / x
//   below        u P(u) + log of what moves the operand to 2 + u, |u| <= 1/2
Value* MathEmitter::Lgamma(Value* x) {
  llvm::Type* type = x->getType();
  bool wide = IsDouble(x);
  if (!wide) x = b_.CreateFPExt(x, DoubleLike(x));
  Value *zero = Number(x, 0.0), *one = Number(x, 1.0);
  Value* a = Abs(x);
  Value* negative = b_.CreateFCmpOLT(x, zero);
  Value* large = b_.CreateFCmpOGE(a, Number(x, 2.5));
  Value* below_half = b_.CreateFCmpOLT(a, Number(x, 0.5));
  Value* below_middle = b_.CreateFCmpOLT(a, Number(x, 1.5));
  auto by_size = [&](Value* half, Value* middle, Value* rest) {
    return b_.CreateSelect(below_half, half, b_.CreateSelect(below_middle, middle, rest));
  };
  Value* next = b_.CreateFAdd(a, one);
  Value* moved_up = by_size(b_.CreateFMul(a, next), a, one);
  Value* moved_down = by_size(next, one, a);
  Value* product = b_.CreateSelect(large, a, b_.CreateSelect(negative, moved_down, moved_up));
  Value* sign =
      b_.CreateSelect(b_.CreateOr(below_middle, b_.CreateNot(negative)), Number(x, -1.0), one);
  Value* half = b_.CreateSelect(negative, Number(x, 0.5), Number(x, -0.5));
  Value* u = b_.CreateFSub(a, by_size(zero, one, Number(x, 2.0)));
  Value* inverse = b_.CreateFDiv(one, a);
  Value* z = b_.CreateFMul(inverse, inverse);
  Value *near_two, *stirling, *sine;
  Value* distance = FromNearestWhole(a);
  Value* square = b_.CreateFMul(distance, distance);
  if (wide) {
    near_two =
        Polynomial(u, {0x1.b0ee6072093cep-2, 0x1.4a34cc4a60fa8p-2, -0x1.13e001a557547p-4,
                       0x1.51322ac7d6f0ep-6, -0x1.e404fc21dc11cp-8, 0x1.7add6eb02deb4p-9,
                       -0x1.38ac5bfba7197p-10, 0x1.0b36ae7dda312p-11, -0x1.d3fd6b1d7391p-13,
                       0x1.a12828c3eecb3p-14, -0x1.78d8e634af8aep-15, 0x1.57fdf04e16e1bp-16,
                       -0x1.3d4e419b869e6p-17, 0x1.26d97de2a08e6p-18, -0x1.08ef00a7fea87p-19,
                       0x1.e31206fd24133p-21, -0x1.38375f2569263p-21, 0x1.3fb461161945ap-22});
    stirling = Polynomial(
        z, {0x1.5555555555554p-4, -0x1.6c16c16c04d8ap-9, 0x1.a01a013d3d787p-11,
            -0x1.38134938bf9dep-11, 0x1.b940f8c255fc8p-11, -0x1.f51af0e0dd09cp-10,
            0x1.97c56cc5d50b5p-8, -0x1.9ef3182ef9923p-6, 0x1.ba58c877b0a06p-4, -0x1.9df5c8e8272cp-2,
            0x1.239f01d079097p0, -0x1.061d2f1a801acp1, 0x1.b8c902dffce7ep0});
    sine =
        Polynomial(square, {1.0, -0x1.a51a6625307d3p0, 0x1.9f9cb402bc428p-1, -0x1.86a8e4720a11ap-3,
                            0x1.ac6805cc82967p-6, -0x1.33816995ae33bp-9, 0x1.3746a0e0cbe06p-13,
                            -0x1.d3e66f4fbbe5dp-18, 0x1.0740150d65ef3p-22});
  } else {
    near_two =
        Polynomial(u, {0x1.b0ee6067b93f7p-2, 0x1.4a34cb4ab6cabp-2, -0x1.13dfeb30a7125p-4,
                       0x1.51358950e79a4p-6, -0x1.e424dec8588d1p-8, 0x1.7959e6781be15p-9,
                       -0x1.34bac8f811eb5p-10, 0x1.2ae2d0818c538p-11, -0x1.1b2fa6779ed54p-12});
    stirling = Polynomial(z, {0x1.555554bb3e5e4p-4, -0x1.6c06d2a9e5d53p-9, 0x1.97bd2170f2cf7p-11,
                              -0x1.b08d96ee6db31p-12});
    sine = Polynomial(square, {0x1.ffffffffd15f8p-1, -0x1.a51a660c9ee57p0, 0x1.9f9cab74f5f69p-1,
                               -0x1.86a6afd9eac16p-3, 0x1.abe332906da85p-6, -0x1.24f83083b379ap-9});
  }
  near_two = b_.CreateFMul(u, near_two);
  stirling = b_.CreateFMul(stirling, inverse);
  // log(pi / |sin(pi x)|) is what reflection adds, with the sign of all else changed.
  sine = b_.CreateFMul(Abs(distance), sine);
  Value* result;
  if (wide) {
    PairArithmetic pairs(b_, options_.has_fma);
    // x (log(x) - 1) -+ log(x) / 2.
    FloatPair log = LogInTwo(product);
    FloatPair less_one = pairs.Sum(log.high, Number(x, -1.0));
    less_one.low = b_.CreateFAdd(less_one.low, log.low);
    Value* times = b_.CreateSelect(large, a, sign);
    FloatPair scaled = pairs.Product(times, b_.CreateSelect(large, less_one.high, log.high));
    Value* rest = b_.CreateFMul(times, b_.CreateSelect(large, less_one.low, log.low));
    rest = b_.CreateFAdd(rest, scaled.low);
    FloatPair sum =
        pairs.Sum(scaled.high, b_.CreateSelect(large, b_.CreateFMul(half, log.high), zero));
    rest = b_.CreateFAdd(rest, sum.low);
    sum = pairs.Sum(sum.high, b_.CreateSelect(large, Number(x, kHalfLogTwoPi), near_two));
    stirling = b_.CreateFAdd(stirling, Number(x, kHalfLogTwoPiRest));
    rest = b_.CreateFAdd(b_.CreateFAdd(rest, sum.low), b_.CreateSelect(large, stirling, zero));
    result = b_.CreateFAdd(sum.high, rest);
    FloatPair reflection = LogInTwo(sine);
    FloatPair both = pairs.Sum(sum.high, reflection.high);
    rest = b_.CreateFAdd(rest, b_.CreateFAdd(both.low, reflection.low));
    result = b_.CreateSelect(negative, b_.CreateFNeg(b_.CreateFAdd(both.high, rest)), result);
    // Where products may overflow, all else is nothing to them.
    Value* huge = b_.CreateFCmpOGT(a, Number(x, 0x1p60));
    result = b_.CreateSelect(huge, b_.CreateFMul(a, less_one.high), result);
  } else {
    Value* factor = b_.CreateSelect(large, b_.CreateFAdd(a, half), sign);
    stirling = b_.CreateFAdd(stirling, b_.CreateFSub(Number(x, kHalfLogTwoPi), a));
    Value* base = b_.CreateSelect(large, stirling, near_two);
    result = MulAdd(factor, Log(product), base);
    Value* reflected = b_.CreateFNeg(b_.CreateFAdd(result, Log(sine)));
    result = b_.CreateSelect(negative, reflected, result);
  }
  Value* infinity = llvm::ConstantFP::getInfinity(x->getType());
  Value* whole = b_.CreateFCmpOEQ(distance, zero);
  Value* pole = b_.CreateAnd(whole, b_.CreateFCmpOLE(x, zero));
  pole = b_.CreateOr(pole, b_.CreateFCmpOEQ(a, infinity));
  result = b_.CreateSelect(pole, infinity, result);
  return wide ? result : b_.CreateFPTrunc(result, type);
}

// digamma(x) = base + sum of inverses, for which x below 0 has 1 - x:
//   from 9/4 on  log(x) -+ 1 / (2 x) - V(1/x^2) / x^2
//   below        u R(u), u = y - 1.4616..., y between 5/4 and 9/4
// and pi / tan(pi x) = 1/r - r Q(r^2) below 0.
Value* MathEmitter::Digamma(Value* x) {
  llvm::Type* type = x->getType();
  bool wide = IsDouble(x);
  if (!wide) x = b_.CreateFPExt(x, DoubleLike(x));
  Value *zero = Number(x, 0.0), *one = Number(x, 1.0), *minus_one = Number(x, -1.0);
  Value* a = Abs(x);
  Value* negative = b_.CreateFCmpOLT(x, zero);
  Value* large = b_.CreateFCmpOGE(a, Number(x, 2.25));
  Value* below_quarter = b_.CreateFCmpOLT(a, Number(x, 0.25));
  Value* below_middle = b_.CreateFCmpOLT(a, Number(x, 1.25));
  auto moved = [&](double by) { return Number(x, by - kDigammaRoot); };
  Value* u = b_.CreateFAdd(a, b_.CreateSelect(below_quarter, moved(2),
                                              b_.CreateSelect(below_middle, moved(1), moved(0))));
  u = b_.CreateFSub(u, Number(x, kDigammaRootRest));
  Value* inverse = b_.CreateFDiv(one, a);
  Value* z = b_.CreateFMul(inverse, inverse);
  Value* distance = FromNearestWhole(a);
  Value* square = b_.CreateFMul(distance, distance);
  Value *near_root, *series, *cotangent;
  if (wide) {
    near_root =
        Polynomial(u, {0x1.ef72bc8ee38acp-1,   -0x1.c563b54aa1a2fp-2, 0x1.08b4294d50391p-2,
                       -0x1.4fc13172592a5p-3,  0x1.b9a5b636f510ap-4,  -0x1.27baba247eb17p-4,
                       0x1.8fce02c039b01p-5,   -0x1.0fa7ed2137791p-5, 0x1.723d68331234dp-6,
                       -0x1.f96fdbccb68d4p-7,  0x1.5954640fee4dep-7,  -0x1.d8307b21570f2p-8,
                       0x1.43253c65b0991p-8,   -0x1.ba9bad2364ab8p-9, 0x1.2c4ab19f9c9ap-9,
                       -0x1.83f3b00f3e1b2p-10, 0x1.b771d7887ffc7p-11, -0x1.8345e7aea5707p-12,
                       0x1.c2a7982673c96p-14,  -0x1.f80967a232a53p-17});
    series = Polynomial(
        z, {0x1.555555555555p-4, -0x1.11111110f8a01p-7, 0x1.041040b634785p-8, -0x1.1110df730cba5p-8,
            0x1.f06b4f1d8b43bp-8, -0x1.58b52c9176e55p-6, 0x1.4d6fcf01cd70fp-4,
            -0x1.92883e4b12982p-2, 0x1.06b34a70b8b79p1, -0x1.414c24d0b53abp3, 0x1.48d1c35ad8691p5,
            -0x1.01bb31dcc8643p7, 0x1.1b5c9737574c1p8, -0x1.80848a3b9abe4p8, 0x1.e170258087dcep7});
    cotangent = Polynomial(square, {0x1.a51a6625307d3p1, 0x1.151322ac7d845p1, 0x1.0470984c0cf8dp1,
                                    0x1.010b36ad12a09p1, 0x1.00412ee124257p1, 0x1.001005a2617bep1,
                                    0x1.0006ab56f0b2fp1, 0x1.ffa84165292dep0, 0x1.020f9d155f7cdp1,
                                    0x1.ddbed143bf1a7p0, 0x1.64fcbc3ea4813p1, -0x1.41187143d0fb3p0,
                                    0x1.61bc1c1be0273p3, -0x1.b5f6c747b62ap3, 0x1.fab5259f3fa27p3});
  } else {
    near_root = Polynomial(
        u, {0x1.ef72bcb00a7f5p-1, -0x1.c563b6dac8053p-2, 0x1.08b3dcf4b1c5ep-2,
            -0x1.4fbebd0eae26ap-3, 0x1.b9d43305a64cp-4, -0x1.28c0218027cbcp-4, 0x1.8f3417379a2b7p-5,
            -0x1.ed44e848ec398p-6, 0x1.c59bfadc0ea8p-7, -0x1.a352075f3ce49p-9});
    series = Polynomial(z, {0x1.5555548d041d8p-4, -0x1.110a55abdfb77p-7, 0x1.01b65d206baf3p-8,
                            -0x1.d46f4625c1c87p-9, 0x1.7eba3d845abf1p-9});
    cotangent = Polynomial(square, {0x1.a51a661ecc8bp1, 0x1.15132f4aa7be4p1, 0x1.046c8802735c2p1,
                                    0x1.0189d87a31921p1, 0x1.f18be5cbfdefbp0, 0x1.3c4efa1083269p1,
                                    -0x1.4592655e93b02p-6, 0x1.85a4bfa532f15p2});
  }
  near_root = b_.CreateFMul(u, near_root);
  // What is added of 1 / a, and for small operands of 1 / (a + 1).
  auto by_sign = [&](Value* below, Value* above) {
    return b_.CreateSelect(negative, below, above);
  };
  Value* times =
      b_.CreateSelect(large, by_sign(Number(x, 0.5), Number(x, -0.5)),
                      b_.CreateSelect(below_middle, by_sign(zero, minus_one), by_sign(one, zero)));
  Value* second = b_.CreateFDiv(minus_one, b_.CreateFAdd(a, one));
  Value* rest = b_.CreateSelect(large, b_.CreateFNeg(b_.CreateFMul(series, z)),
                                b_.CreateSelect(below_quarter, second, zero));
  // An inverse may be infinite, which is right, where it is not to be added at all.
  Value* added = b_.CreateFMul(inverse, times);
  added = b_.CreateSelect(b_.CreateFCmpOEQ(times, zero), zero, added);
  Value* pole = b_.CreateFDiv(one, distance);
  Value* cotangent_rest = b_.CreateFNeg(b_.CreateFMul(distance, cotangent));
  Value *infinity = llvm::ConstantFP::getInfinity(x->getType()), *result;
  if (wide) {
    PairArithmetic pairs(b_, options_.has_fma);
    FloatPair log = LogInTwo(a);
    Value* base = b_.CreateSelect(large, log.high, near_root);
    rest = b_.CreateFAdd(b_.CreateFAdd(rest, b_.CreateSelect(large, log.low, zero)), added);
    result = b_.CreateFAdd(base, rest);
    // The rounding error of 1 / r, where it is a normal number.
    FloatPair back = pairs.Product(pole, distance);
    Value* lost = b_.CreateFMul(b_.CreateFSub(b_.CreateFSub(one, back.high), back.low), pole);
    lost = b_.CreateSelect(b_.CreateFCmpOLT(Abs(pole), Number(x, 0x1p900)), lost, zero);
    FloatPair both = pairs.Sum(base, pole);
    Value* lows = b_.CreateFAdd(b_.CreateFAdd(both.low, lost), cotangent_rest);
    Value* reflected = b_.CreateFAdd(both.high, b_.CreateFAdd(rest, lows));
    reflected = b_.CreateSelect(b_.CreateFCmpOEQ(Abs(pole), infinity), pole, reflected);
    result = b_.CreateSelect(negative, reflected, result);
  } else {
    Value* base = b_.CreateSelect(large, Log(a), near_root);
    result = b_.CreateFAdd(base, b_.CreateFAdd(rest, added));
    Value* reflected = b_.CreateFAdd(b_.CreateFAdd(result, cotangent_rest), pole);
    result = b_.CreateSelect(negative, reflected, result);
  }
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, infinity), infinity, result);
  Value* whole = b_.CreateFCmpOEQ(distance, zero);
  Value* invalid = b_.CreateAnd(whole, b_.CreateFCmpOLT(x, zero));
  Value* lowest = llvm::ConstantFP::getInfinity(x->getType(), true);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, zero), lowest, result);
  result = b_.CreateSelect(invalid, llvm::ConstantFP::getNaN(x->getType()), result);
  return wide ? result : b_.CreateFPTrunc(result, type);
}

}  // namespace kiln::codegen

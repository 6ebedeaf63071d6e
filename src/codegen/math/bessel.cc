// The modified Bessel function of the first kind of order 1, times e^-|x|.

#include "codegen/math/math.h"
#include "codegen/math/pairs.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

// By Sollya's fpminimax: of (I_1(x) / x - 1/2) / x^2 in x^2, and of (e^-x I_1(x) sqrt(x) -
// 1 / sqrt(2 pi)) x in 1 / x.
constexpr double kSeriesF64[] = {0x1p-4,
                                 0x1.5555555555555p-9,
                                 0x1.c71c71c71c72fp-15,
                                 0x1.6c16c16c16aa3p-21,
                                 0x1.845c8a0ce6d72p-28,
                                 0x1.27e4fb77781a3p-35,
                                 0x1.522a43f6e5c06p-43,
                                 0x1.2c9758e09793cp-51,
                                 0x1.ab81e8cdecd46p-60,
                                 0x1.f176c4285a99bp-69,
                                 0x1.e260ac78335dp-78,
                                 0x1.8becd2099c5fp-87,
                                 0x1.157c63fc9b4f5p-96,
                                 0x1.5c3274a4b1f8dp-106,
                                 0x1.31038e0c24a9ep-116,
                                 0x1.121a98cdc46eap-125};
constexpr double kAsymptoticF64[] = {
    -0x1.32633e6df28bap-3, -0x1.7efc0e098098ap-5, -0x1.4f1c8bf3a0168p-5, -0x1.d740c8124fbbbp-5,
    -0x1.c541ff979aa2bp-4, -0x1.20e3b1011e6dap-2, 0x1.c555d4d53fa7p-2,   -0x1.617725db48d73p6,
    0x1.fff3a0d28187fp11,  -0x1.0686f9e0cfecfp17, 0x1.4a4691d15e752p21,  -0x1.ccaac545628b3p23,
    -0x1.e47bfa26283f9p29, 0x1.3077ea98a2dd2p35,  -0x1.93d8ef5abc74ep39, 0x1.690a1f8c40262p43,
    -0x1.cb7f64603dbebp46, 0x1.a3193b720a41ap49,  -0x1.0c7f881e7ae62p52, 0x1.cbb197e2d4c7dp53,
    -0x1.d8a40dd90e2e9p54, 0x1.b9c5059ea9bf5p54};
constexpr double kSeriesF32[] = {0x1p-4,         0x1.555558p-9,  0x1.c71bf4p-15, 0x1.6c1ea4p-21,
                                 0x1.83e534p-28, 0x1.2ba0acp-35, 0x1.31dc34p-43, 0x1.b873fp-51};
constexpr double kAsymptoticF32[] = {-0x1.32634p-3, -0x1.7ee75ap-5, -0x1.58d13p-5, -0x1.5bcf58p-8,
                                     -0x1.3181d6p0, 0x1.627388p3,   -0x1.d08d18p5, 0x1.995a4p6};
struct Parts {
  double limit;
  double base, base_rest;                      // 1 / sqrt(2 pi)
  std::span<const double> series, asymptotic;  // no more of the first ones
};
constexpr Parts kF64 = {9, 0x1.9884533d43651p-2, -0x1.cbc0d30ebfd15p-56, kSeriesF64,
                        kAsymptoticF64};
constexpr Parts kF32 = {6, 0x1.988454p-2, -0x1.857936p-27, kSeriesF32, kAsymptoticF32};

}  // namespace

// Below the limit x P(x^2) e^-x, above P(1/x) / sqrt(x). Next to the limit the polynomials of f32
// have no bit to spare for products that are rounded: without FMA they are computed in doubles.
Value* MathEmitter::BesselI1e(Value* x) {
  const Parts& p = IsDouble(x) ? kF64 : kF32;
  llvm::Type* type = x->getType();
  if (!options_.has_fma && !IsDouble(x)) x = b_.CreateFPExt(x, DoubleLike(x));
  Value* a = Abs(x);
  Value* small = b_.CreateFCmpOLT(a, Number(x, p.limit));
  auto by_part = [&](double series, double asymptotic) {
    return b_.CreateSelect(small, Number(x, series), Number(x, asymptotic));
  };
  auto coefficient = [&](size_t k) {
    return by_part(k < p.series.size() ? p.series[k] : 0, p.asymptotic[k]);
  };
  Value* inner = b_.CreateSelect(small, a, Number(x, 0.0));
  FloatPair square = PairArithmetic(b_, options_.has_fma).Product(inner, inner);
  Value* root = Rsqrt(a);
  Value* v = b_.CreateSelect(small, square.high, b_.CreateFMul(root, root));
  size_t k = p.asymptotic.size() - 1;
  Value* sum = coefficient(k);
  while (k-- > 0) sum = MulAdd(sum, v, coefficient(k));
  sum = MulAdd(sum, v, by_part(0, p.base_rest));
  // The sum with 1/2, or 1 / sqrt(2 pi), is rounded once, in the end.
  Value* factor = b_.CreateSelect(small, a, root);
  Value* first = b_.CreateFMul(factor, by_part(0.5, p.base));
  Value* second = b_.CreateFMul(factor, sum);
  // e^-x = 2^n (1 + (e^r - 1)). What rounding takes off the square counts, as x P(x^2) grows as e^x
  // does: with the derivative of log(P), from 1/8 at 0 down, within a tenth of it.
  Reduced e = ReduceByLn2(b_.CreateFNeg(inner));
  Value* slope = Polynomial(inner, {0.125, -0.0131, 0.000477});
  Value* r = MulAdd(slope, square.low, e.r);
  Value* less_one = MulAdd(ExpTail(r), b_.CreateFMul(r, r), r);
  second = MulAdd(b_.CreateFAdd(first, second), less_one, second);
  Value* result = b_.CreateFMul(b_.CreateFAdd(first, second), PowerOfTwo(e.n));
  result = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, x);
  return type == x->getType() ? result : b_.CreateFPTrunc(result, type);
}

}  // namespace kiln::codegen

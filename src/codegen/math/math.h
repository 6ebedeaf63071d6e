// The math library: elementary functions as polynomials over LLVM IR, written once for scalars and
// vectors, CPU and PTX. x is f32 or f64, or a fixed vector of either, and the result has its type.
// Only intrinsics that lower on every target are used, and no pass has to clean up.
//
// Bounds are in units in the last place over all finite results, subnormals included; NaN gives
// NaN, and infinities and signed zeros are those of IEEE 754 and C's Annex F.
//
//   function  method
//   exp       x = n ln2 + r (Cody and Waite), Taylor's series for e^r, 2^n in two factors
//   expm1     the same with e^r - 1, put together as 2^n (e^r - 1) + (2^n - 1)
//   log       x = 2^k (1 + f), f32: 3/4 <= 1 + f < 3/2, f + f^2 P(f), P minimax by Sollya's
//             fpminimax; f64: sqrt(1/2) < 1 + f < sqrt(2), series in (f / (2 + f))^2
//   log1p     log(u) + l / u with u + l = 1 + x, u rounded
//   tanh      t / (t + 1) with t = expm1(2 |x|) / 2
//   logistic  1 / (1 + e^-x), or e^x / (1 + e^x) below 0
//   rsqrt     1 / sqrt(x)
//   pow       2^(y log2 |x|) in twice the precision, with C's special cases
//   fmod      exact, by doubling and halving the divisor
//   sin, cos  x - n pi/2 (Cody and Waite; Payne and Hanek for large ones), polynomials in r^2
//   tan       sin / cos of the reduced operand
//   asin, acos  x + x^3 P(x^2) to 1/2; by the square root of (1 - x) / 2 above
//   atan, atan2  x + x^3 P(x^2) of the operand, or of its inverse where that is smaller
//   sinh, cosh  2 (h -+ 1 / (16 h)), h = e^|x| / 4; sinh below 1 by an odd polynomial
//   asinh, acosh, atanh  log1p of an expression that does not cancel
//   cbrt      the inverse root by Halley's iteration from the exponent, one step in twice the
//             precision
//   erf       an odd polynomial below 1, 1 - e^-Q(x) above
//   erf_inv   x P(w), w = -log(1 - x^2), for large w a polynomial in its square root
//   bessel_i1e  x P(x^2) e^-x, for large x P(1/x) / sqrt(x)
//   lgamma, digamma  Stirling's series, from 5/2 and 9/4 on; below a polynomial, moved by whole
//             numbers; reflection below 0
//   zeta      sums of (q + k)^-s by Euler's and Maclaurin's formula, three of them below 0
//   polygamma  the same with a factor of n!, which the exponents take
//   erfc      1 - erf below 1/2, e^(-x^2) times a polynomial in (x - K) / (x + K) above
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {

struct FloatPair;  // pairs.h

// A feature of the target; a property of the whole module, so that scalar and vector code agree.
struct MathOptions {
  bool has_fma = true;
  bool has_f16 = true;      // instructions that convert between f16 and f32
  bool has_avx512 = false;  // AVX-512 F and DQ, with vectors of all lengths
  // Conversions, negations and absolute values keep the sign and the payload of a NaN. Those of a
  // GPU give the same NaN for all, as its arithmetic does.
  bool keeps_nans = true;
};

class MathEmitter {
 public:
  MathEmitter(llvm::IRBuilderBase& builder, MathOptions options) : b_(builder), options_(options) {}

  llvm::Value* Exp(llvm::Value* x);
  // The same of an x that is 64 at most, or NaN.
  llvm::Value* ExpWithoutOverflow(llvm::Value* x);
  llvm::Value* Expm1(llvm::Value* x);
  llvm::Value* Log(llvm::Value* x);
  llvm::Value* Log1p(llvm::Value* x);
  llvm::Value* Tanh(llvm::Value* x);
  llvm::Value* Logistic(llvm::Value* x);
  llvm::Value* Sqrt(llvm::Value* x);
  llvm::Value* Rsqrt(llvm::Value* x);
  llvm::Value* Pow(llvm::Value* x, llvm::Value* y);
  // The remainder of a division that truncates, with the dividend's sign. Ends in another block.
  llvm::Value* Fmod(llvm::Value* x, llvm::Value* y);
  // These three end in another block too.
  llvm::Value* Sin(llvm::Value* x);
  llvm::Value* Cos(llvm::Value* x);
  llvm::Value* Tan(llvm::Value* x);
  llvm::Value* Asin(llvm::Value* x);
  llvm::Value* Acos(llvm::Value* x);
  llvm::Value* Atan(llvm::Value* x);
  llvm::Value* Atan2(llvm::Value* y, llvm::Value* x);
  llvm::Value* Sinh(llvm::Value* x);
  llvm::Value* Cosh(llvm::Value* x);
  llvm::Value* Asinh(llvm::Value* x);
  llvm::Value* Acosh(llvm::Value* x);
  llvm::Value* Atanh(llvm::Value* x);
  llvm::Value* Cbrt(llvm::Value* x);
  llvm::Value* Erf(llvm::Value* x);
  llvm::Value* Erfc(llvm::Value* x);
  llvm::Value* ErfInv(llvm::Value* x);
  llvm::Value* BesselI1e(llvm::Value* x);
  llvm::Value* Lgamma(llvm::Value* x);
  llvm::Value* Digamma(llvm::Value* x);
  // These two end in another block.
  llvm::Value* Zeta(llvm::Value* s, llvm::Value* q);
  llvm::Value* Polygamma(llvm::Value* order, llvm::Value* x);
  // The smaller or the larger of two: -0 is below 0, and a NaN wins. With AVX-512, of f32.
  llvm::Value* Extremum(llvm::Value* x, llvm::Value* y, bool maximum);
  // A NaN is lost beside a number.
  llvm::Value* ExtremumOfNumbers(llvm::Value* x, llvm::Value* y, bool maximum);

 private:
  struct Reduced {
    llvm::Value* n;        // the integer, as an integer of the float's width
    llvm::Value* n_float;  // the same as a float
    llvm::Value* r;        // x - n ln2
  };
  Reduced ReduceByLn2(llvm::Value* x);
  llvm::Value* PowerOfTwo(llvm::Value* n);
  // x 2^n, rounded once where it is subnormal; n twice as far out as normal exponents.
  llvm::Value* TimesPowerOfTwo(llvm::Value* x, llvm::Value* n);
  // c[0] + c[1] x + c[2] x^2 + ..., by Horner.
  llvm::Value* Polynomial(llvm::Value* x, std::initializer_list<double> coefficients);
  llvm::Value* ExpTail(llvm::Value* r);
  llvm::Value* MulAdd(llvm::Value* x, llvm::Value* y, llvm::Value* z);
  llvm::Value* Abs(llvm::Value* x);
  llvm::Value* Number(llvm::Value* like, double value);
  llvm::Value* Integer(llvm::Value* like_float, uint64_t value);
  llvm::Type* IntegerType(llvm::Value* like_float);
  llvm::Type* DoubleLike(llvm::Value* x);
  FloatPair LogInHundredBits(llvm::Value* x);
  llvm::Value* ExpOfPair(FloatPair x);
  llvm::Value* PowF64(llvm::Value* x, llvm::Value* y);
  // e^x = 2^n sum.
  struct ScaledExp {
    llvm::Value* sum;
    llvm::Value* n;
  };
  ScaledExp ExpInTwo(llvm::Value* x);
  // e^x for |x| of 87 at most, or NaN.
  llvm::Value* ExpOfModerate(llvm::Value* x);
  // e^a / 4 for a from 0 on; any number whose double is infinite where e^a / 2 is.
  llvm::Value* QuarterOfExp(llvm::Value* a);
  // (e^x - 1) / 2 for x up to the largest with a finite e^x.
  llvm::Value* HalfOfExpm1(llvm::Value* x);
  // ln2 in two parts of f32, of which the first has zeros for the bits of an exponent.
  static constexpr double kLn2High = 6.9313812256e-01, kLn2Low = 9.0580006145e-06;
  llvm::Value* LogTail(llvm::Value* f);
  llvm::Value* LogOfNormal(llvm::Value* x, llvm::Value* scaled, llvm::Value* power,
                           llvm::Value* rest);
  llvm::Value* Log1pPlus(llvm::Value* x, llvm::Value* power);
  llvm::Value* ArcSineTail(llvm::Value* z);
  llvm::Value* ArcTangentTail(llvm::Value* x);
  llvm::Value* ErfNearZero(llvm::Value* x);
  FloatPair LogInTwo(llvm::Value* x);
  llvm::Value* FromNearestWhole(llvm::Value* a);

  // zeta.cc; of f64, `precise` or with the precision of f32.
  FloatPair LogOfFactorial(llvm::Value* n, bool precise);
  FloatPair HurwitzPower(llvm::Value* s, llvm::Value* q, llvm::Value* n, FloatPair factor,
                         bool precise);
  llvm::Value* HurwitzSum(llvm::Value* s, llvm::Value* q, FloatPair factor, bool precise);
  llvm::Value* ZetaTimes(llvm::Value* s, llvm::Value* q, FloatPair factor, bool precise);
  llvm::Value* IsOddWhole(llvm::Value* whole);

  // An operand as quarter turns, of which the lowest two bits count, and the rest, high + low.
  struct Turns {
    llvm::Value* quarters;
    llvm::Value* high;
    llvm::Value* low;
  };
  Turns InHalves(llvm::Value* x, llvm::Type* type);
  Turns ReduceLarge(llvm::Value* x);
  Turns ReduceModerateF32(llvm::Value* x);
  Turns ReduceModerateF64(llvm::Value* x);
  Turns ReduceByQuarterTurns(llvm::Value* x);
  struct SinCos {
    llvm::Value* sine;
    llvm::Value* cosine;
  };
  SinCos SinCosOf(const Turns& r);

  // avx512.cc; of f32.
  bool UsesAvx512(llvm::Value* x) const { return options_.has_avx512 && !IsDouble(x); }
  llvm::Value* OnVectors(std::initializer_list<llvm::Value*> operands, int least,
                         const std::function<llvm::Value*(const std::vector<llvm::Value*>&)>& f);
  llvm::Value* ScaleByPower(llvm::Value* x, llvm::Value* n);
  llvm::Value* ExponentOf(llvm::Value* x);
  llvm::Value* RestOf(llvm::Value* x, uint32_t bits);
  llvm::Value* MantissaOf(llvm::Value* x);
  llvm::Value* InverseOfNormal(llvm::Value* x);
  llvm::Value* LookUp(std::span<const float, 32> table, llvm::Value* index);
  llvm::Value* ExpAvx512(llvm::Value* x, int power, bool may_overflow);
  llvm::Value* LogisticAvx512(llvm::Value* x);
  llvm::Value* LogAvx512(llvm::Value* x, llvm::Value* power, llvm::Value* rest);
  llvm::Value* TanhAvx512(llvm::Value* x);
  llvm::Value* ErfAvx512(llvm::Value* x);

  bool IsDouble(llvm::Value* x) const { return x->getType()->getScalarType()->isDoubleTy(); }

  llvm::IRBuilderBase& b_;
  MathOptions options_;
};

}  // namespace kiln::codegen

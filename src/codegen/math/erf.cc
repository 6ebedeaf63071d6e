// The error function and its complement.

#include "codegen/math/math.h"
#include "codegen/math/pairs.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen {

using llvm::Value;

// Coefficients by Sollya: of erf(x) / x - 1 by fpminimax; of Q by Remez' algorithm with the weight
// erfc(x), which leaves the error of 1 - e^-Q level.

// erf(x) for |x| below 1, for f32 below 7/8.
Value* MathEmitter::ErfNearZero(Value* x) {
  Value* z = b_.CreateFMul(x, x);
  Value* series =
      IsDouble(x)
          ? Polynomial(z, {0x1.06eba8214db69p-3, -0x1.812746b0379fdp-2, 0x1.ce2f21a04360fp-4,
                           -0x1.b82ce312ab0a3p-6, 0x1.565bcd126d6edp-8, -0x1.c02db49229b1fp-11,
                           0x1.f9a3342152cf5p-14, -0x1.f4d31d85b4f19p-17, 0x1.b9ed71fb0f591p-20,
                           -0x1.5f8e4d240cd84p-23, 0x1.fc0d5c2ee7653p-27, -0x1.452ac54f53ebbp-30,
                           0x1.25ec3cb65512ap-34})
          : Polynomial(z, {0x1.06eba6p-3, -0x1.8127p-2, 0x1.ce1fd2p-4, -0x1.b6e418p-6,
                           0x1.4979b2p-8, -0x1.440b16p-11});
  return MulAdd(series, x, x);
}

Value* MathEmitter::Erf(Value* x) {
  if (UsesAvx512(x)) return ErfAvx512(x);
  bool wide = IsDouble(x);
  // From the limit on the result rounds to 1.
  Value* limit = Number(x, wide ? 6.0 : 4.0);
  Value* a = Abs(x);
  Value* clamped = b_.CreateSelect(b_.CreateFCmpOGT(a, limit), limit, a);
  Value* small = b_.CreateFCmpOLT(a, Number(x, wide ? 1.0 : 0.875));
  Value* q;
  if (wide) {
    q = Polynomial(clamped, {0x1.3020c5670d96ep-23, 0x1.20dd5c6ca8efbp0, 0x1.45f3f25fc8629p-1,
                             0x1.a4df55176a128p-4, -0x1.38bb03b1ce9dp-6, -0x1.17e231eca28b2p-12,
                             0x1.cbd039bd52947p-10, -0x1.496b9079cc8edp-11, 0x1.2eaffd5ae3292p-15,
                             0x1.3afee62297b34p-14, -0x1.8afb13c2ed355p-15, 0x1.20e63526d4284p-16,
                             -0x1.2f4a423a3e04ap-18, 0x1.de988fa4db2d3p-21, -0x1.1c2f02ace379ap-23,
                             0x1.ef645ad5af7dcp-27, -0x1.2beee7fffef49p-30, 0x1.c353fda235bd2p-35,
                             -0x1.3de8d5e325d69p-40});
  } else {
    q = Polynomial(clamped, {-0x1.47c5b6p-13, 0x1.2121fep0, 0x1.445e48p-1, 0x1.baab5p-4,
                             -0x1.9956b8p-6, 0x1.0df1f4p-8, -0x1.bc304ap-12, 0x1.52067cp-16});
  }
  Value* inner = ErfNearZero(clamped);
  Value* outer = b_.CreateFSub(Number(x, 1.0), ExpOfModerate(b_.CreateFNeg(q)));
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, b_.CreateSelect(small, inner, outer),
                                  x);
}

// Below 1/2 1 - erf(x), above e^(-x^2) F / (1 + 2 x). F = (1 + 2 x) e^(x^2) erfc(x) lies between 1
// and 1.3, and in t = (x - K) / (x + K) one polynomial does for it (Shepherd and Laframboise 1981):
// by fpminimax, for K = 3 (2 for f32) from x = 1/2 on.
Value* MathEmitter::Erfc(Value* x) {
  bool wide = IsDouble(x);
  Value *one = Number(x, 1.0), *two = Number(x, 2.0);
  // From the limit on the result is 0.
  Value* limit = Number(x, wide ? 28.0 : 10.5);
  Value* a = Abs(x);
  a = b_.CreateSelect(b_.CreateFCmpOGT(a, limit), limit, a);
  Value* middle = Number(x, wide ? 3.0 : 2.0);
  Value* t = b_.CreateFDiv(b_.CreateFSub(a, middle), b_.CreateFAdd(a, middle));
  Value* rest_of_f =
      wide ? Polynomial(t, {-0x1.15c084bb9e8f1p-3,  -0x1.85a15c58a9bf2p-5,  0x1.098366a5b4586p-3,
                            -0x1.e88b803a5cd15p-4,  0x1.17ca2877f9427p-4,   -0x1.8574c4043e29bp-6,
                            0x1.4b884e2af1b52p-9,   0x1.ef1bd7567427cp-10,  -0x1.98db4be5640e8p-11,
                            -0x1.b90fc1c2f7b6ap-14, 0x1.065997768ce56p-13,  0x1.4b63ed639f74p-18,
                            -0x1.5123c68c19975p-16, -0x1.77628747a50b7p-21, 0x1.cfe204e609d5ep-19,
                            0x1.4192f42ab08b5p-22,  -0x1.3b74cbe695b07p-21, -0x1.5af168f7b4908p-24,
                            0x1.380c55a8ad41ep-24,  0x1.ef6d9d7573886p-28})
           : Polynomial(
                 t, {-0x1.7bf5d6p-4, -0x1.5407c2p-3, 0x1.4ff86ap-3, -0x1.bc2186p-5, -0x1.06195ep-7,
                     0x1.1c381cp-7, 0x1.25b9c6p-10, -0x1.50774cp-10, -0x1.95b91ep-13});
  // The quotient of F and 1 + 2 x, with what rounding takes off all three.
  PairArithmetic pairs(b_, options_.has_fma);
  FloatPair f = pairs.FastSum(Number(x, wide ? 0x1.40c522d7e4987p0 : 0x1.46e80ep0),
                              b_.CreateFMul(t, rest_of_f));
  FloatPair divisor = pairs.FastSum(b_.CreateFAdd(a, a), one);
  Value* inverse = b_.CreateFDiv(one, divisor.high);
  Value* quotient = b_.CreateFMul(f.high, inverse);
  FloatPair back = pairs.Product(quotient, divisor.high);
  Value* rest = b_.CreateFSub(b_.CreateFSub(f.high, back.high), back.low);
  rest = b_.CreateFAdd(rest, b_.CreateFSub(f.low, b_.CreateFMul(quotient, divisor.low)));
  rest = b_.CreateFMul(rest, inverse);
  // e^(-x^2) = 2^n (1 + (e^r - 1)), with what rounding takes off the square.
  FloatPair square = pairs.Product(a, a);
  Reduced e = ReduceByLn2(b_.CreateFNeg(square.high));
  Value* r = b_.CreateFSub(e.r, square.low);
  Value* less_one = MulAdd(ExpTail(r), b_.CreateFMul(r, r), r);
  Value* product = MulAdd(quotient, less_one, MulAdd(rest, less_one, rest));
  Value* outer = TimesPowerOfTwo(b_.CreateFAdd(quotient, product), e.n);
  outer = b_.CreateSelect(b_.CreateFCmpOLT(x, Number(x, 0.0)), b_.CreateFSub(two, outer), outer);
  Value* inner =
      b_.CreateFSub(one, ErfNearZero(b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, a, x)));
  return b_.CreateSelect(b_.CreateFCmpOLT(a, Number(x, 0.5)), inner, outer);
}

}  // namespace kiln::codegen

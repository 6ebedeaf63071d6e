// sinh, cosh, and the inverse hyperbolic functions.

#include "codegen/math/math.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen {

using llvm::Value;

// Below 1 x + x^3 P(x^2), P minimax by Sollya's fpminimax; above 2 (h - 1 / (16 h)), h = e^x / 4.
Value* MathEmitter::Sinh(Value* x) {
  Value* a = Abs(x);
  Value* z = b_.CreateFMul(x, x);
  Value* series =
      IsDouble(x) ? Polynomial(z, {0x1.5555555555556p-3, 0x1.111111111104p-7, 0x1.a01a01a0318d8p-13,
                                   0x1.71de3a40565e2p-19, 0x1.ae646b4d5f193p-26,
                                   0x1.6118df717749ap-33, 0x1.b52ebddfa9c53p-41})
                  : Polynomial(z, {0x1.555556p-3, 0x1.1110eap-7, 0x1.a01c22p-13, 0x1.76771ep-19});
  Value* inner = MulAdd(b_.CreateFMul(a, z), series, a);
  Value* h = QuarterOfExp(a);
  Value* outer = b_.CreateFSub(h, b_.CreateFDiv(Number(x, 0.0625), h));
  outer = b_.CreateFAdd(outer, outer);
  // A NaN takes the second, which is one.
  Value* small = b_.CreateFCmpOLT(a, Number(x, 1.0));
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, b_.CreateSelect(small, inner, outer),
                                  x);
}

Value* MathEmitter::Cosh(Value* x) {
  Value* h = QuarterOfExp(Abs(x));
  Value* half = b_.CreateFAdd(h, b_.CreateFDiv(Number(x, 0.0625), h));
  return b_.CreateFAdd(half, half);
}

// log(a + sqrt(a^2 + 1)) = log1p(a + a^2 / (1 + sqrt(a^2 + 1))); where 1 is nothing to a^2,
// log(a) + ln2 = log1p(a - 1) + ln2.
Value* MathEmitter::Asinh(Value* x) {
  Value* a = Abs(x);
  Value* one = Number(x, 1.0);
  Value* large = b_.CreateFCmpOGT(a, Number(x, IsDouble(x) ? 0x1p28 : 0x1p13));
  Value* moderate = b_.CreateSelect(large, one, a);
  Value* square = b_.CreateFMul(moderate, moderate);
  Value* divisor = b_.CreateFAdd(Sqrt(MulAdd(moderate, moderate, one)), one);
  Value* w = b_.CreateFAdd(moderate, b_.CreateFDiv(square, divisor));
  w = b_.CreateSelect(large, b_.CreateFSub(a, one), w);
  Value* result = Log1pPlus(w, b_.CreateSelect(large, one, Number(x, 0.0)));
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, x);
}

// log(x + sqrt(x^2 - 1)) = log1p(t + sqrt(2 t + t^2)), t = x - 1; log(x) + ln2 for large ones.
Value* MathEmitter::Acosh(Value* x) {
  Value* one = Number(x, 1.0);
  Value* large = b_.CreateFCmpOGT(x, Number(x, IsDouble(x) ? 0x1p28 : 0x1p13));
  Value* t = b_.CreateFSub(b_.CreateSelect(large, one, x), one);
  Value* w = b_.CreateFAdd(t, Sqrt(MulAdd(t, t, b_.CreateFAdd(t, t))));
  w = b_.CreateSelect(large, b_.CreateFSub(x, one), w);
  Value* result = Log1pPlus(w, b_.CreateSelect(large, one, Number(x, 0.0)));
  Value* invalid = b_.CreateFCmpULT(x, one);
  return b_.CreateSelect(invalid, llvm::ConstantFP::getNaN(x->getType()), result);
}

// log((1 + a) / (1 - a)) / 2 = log1p(2 a / (1 - a)) / 2.
Value* MathEmitter::Atanh(Value* x) {
  Value* a = Abs(x);
  Value* w = b_.CreateFDiv(b_.CreateFAdd(a, a), b_.CreateFSub(Number(x, 1.0), a));
  // Beyond 1 the logarithm is of a number below 0.
  Value* result = b_.CreateFMul(Log1p(w), Number(x, 0.5));
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, x);
}

}  // namespace kiln::codegen

// The cube root.

#include "codegen/math/math.h"
#include "codegen/math/pairs.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen {

using llvm::Value;

Value* MathEmitter::Cbrt(Value* x) {
  bool wide = IsDouble(x);
  Value* a = Abs(x);
  // Subnormals are scaled up by a cube, and numbers with a root whose rounded cube might overflow
  // are scaled down.
  Value* small = b_.CreateFCmpOLT(a, Number(x, wide ? 0x1p-1022 : 0x1p-126));
  Value* large = b_.CreateFCmpOGT(a, Number(x, wide ? 0x1p1000 : 0x1p100));
  auto factor = [&](double up, double down) {
    return b_.CreateSelect(small, Number(x, up),
                           b_.CreateSelect(large, Number(x, down), Number(x, 1.0)));
  };
  Value* scaled = b_.CreateFMul(a, wide ? factor(0x1p54, 0x1p-54) : factor(0x1p24, 0x1p-24));
  Value* unscale = wide ? factor(0x1p-18, 0x1p18) : factor(0x1p-8, 0x1p8);
  // What has no inverse takes no part.
  Value* infinity = llvm::ConstantFP::getInfinity(x->getType());
  Value* positive = b_.CreateFCmpOGT(a, Number(x, 0.0));
  Value* regular = b_.CreateAnd(positive, b_.CreateFCmpOLT(a, infinity));
  scaled = b_.CreateSelect(regular, scaled, Number(x, 1.0));
  // r = a^(-1/3) to 5 %: the bits of a float are nearly linear in its logarithm. The upper 32 are
  // enough.
  llvm::Type* integer = IntegerType(x);
  Value* bits = b_.CreateBitCast(scaled, integer);
  if (wide) bits = b_.CreateLShr(bits, Integer(x, 32));
  Value* third = b_.CreateUDiv(bits, Integer(x, 3));
  Value* guess = b_.CreateSub(Integer(x, wide ? 0x553ef0ffull : 0x54a21d2aull), third);
  if (wide) guess = b_.CreateShl(guess, Integer(x, 32));
  Value* r = b_.CreateBitCast(guess, x->getType());
  // e = 1 - a r^3, r (1 + e/3 + 2/9 e^2 + 14/81 e^3): the error's fourth power each time.
  for (int step = 0; step < 2; ++step) {
    Value* cube = b_.CreateFMul(b_.CreateFMul(scaled, r), b_.CreateFMul(r, r));
    Value* e = b_.CreateFSub(Number(x, 1.0), cube);
    Value* series = Polynomial(e, {1.0 / 3, 2.0 / 9, 14.0 / 81});
    r = MulAdd(b_.CreateFMul(r, e), series, r);
  }
  // y = a r^2, and one step of Newton's from y^3 in twice the precision.
  Value* y = b_.CreateFMul(scaled, b_.CreateFMul(r, r));
  PairArithmetic pairs(b_, options_.has_fma);
  FloatPair square = pairs.Product(y, y);
  FloatPair cube = pairs.Product(y, square.high);
  Value* rest = b_.CreateFSub(b_.CreateFSub(scaled, cube.high),
                              b_.CreateFAdd(cube.low, b_.CreateFMul(y, square.low)));
  // 1 / (3 y^2) = r^2 / 3.
  Value* inverse = b_.CreateFMul(b_.CreateFMul(r, r), Number(x, 1.0 / 3));
  y = b_.CreateFMul(MulAdd(rest, inverse, y), unscale);
  // 0, infinity and NaN are their own cube roots.
  y = b_.CreateSelect(regular, y, a);
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, y, x);
}

}  // namespace kiln::codegen

// asin, acos, atan and atan2. Coefficients are minimax ones by Sollya's fpminimax, of
// (asin(x) - x) / x^3 on [0, 1/2] and of (atan(x) - x) / x^3 on [0, 1].

#include "codegen/math/math.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

// pi/2 and pi, and what is missing of them.
struct Split {
  double high, low;
};
Split HalfPi(bool wide) {
  return wide ? Split{0x1.921fb54442d18p0, 0x1.1a62633145c07p-54}
              : Split{0x1.921fb6p0, -0x1.777a5cp-25};
}

}  // namespace

// (asin(s) - s) / s by z = s^2, z <= 1/4.
Value* MathEmitter::ArcSineTail(Value* z) {
  Value* series =
      IsDouble(z)
          ? Polynomial(z, {0x1.555555555539p-3, 0x1.333333336e80fp-4, 0x1.6db6db427a4f8p-5,
                           0x1.f1c72c38fb342p-6, 0x1.6e89f440197a8p-6, 0x1.1c6be1a68770bp-6,
                           0x1.c6fdc1aaa59bcp-7, 0x1.8ec2fca6002c5p-7, 0x1.abcf5cd7f42b6p-8,
                           0x1.3ff4a9908979ep-6, -0x1.09d3283354289p-6, 0x1.056d6c811bcb5p-5})
          : Polynomial(z,
                       {0x1.5555c8p-3, 0x1.330206p-4, 0x1.747b72p-5, 0x1.8c415ap-6, 0x1.5959aap-5});
  return b_.CreateFMul(series, z);
}

// asin(x) = x + x^3 P(x^2) to 1/2, and pi/2 - 2 asin(sqrt((1 - x) / 2)) above.
Value* MathEmitter::Asin(Value* x) {
  Value* a = Abs(x);
  Value* small = b_.CreateFCmpOLE(a, Number(x, 0.5));
  Value* reflected = b_.CreateFMul(b_.CreateFSub(Number(x, 1.0), a), Number(x, 0.5));
  Value* z = b_.CreateSelect(small, b_.CreateFMul(a, a), reflected);
  Value* s = b_.CreateSelect(small, a, Sqrt(reflected));
  Value* tail = ArcSineTail(z);
  Value* inner = MulAdd(s, tail, s);
  // pi/2 - 2 s - 2 s tail, the large parts first, of which the difference is nearly exact.
  Split half_pi = HalfPi(IsDouble(x));
  Value* twice = b_.CreateFAdd(s, s);
  Value* rest = b_.CreateFSub(b_.CreateFMul(twice, tail), Number(x, half_pi.low));
  Value* outer = b_.CreateFSub(b_.CreateFSub(Number(x, half_pi.high), twice), rest);
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, b_.CreateSelect(small, inner, outer),
                                  x);
}

// acos(x) = pi/2 - asin(x) to 1/2, 2 asin(sqrt((1 - x) / 2)) above, and pi minus that below -1/2.
Value* MathEmitter::Acos(Value* x) {
  Value* a = Abs(x);
  Value* small = b_.CreateFCmpOLE(a, Number(x, 0.5));
  Value* negative = b_.CreateFCmpOLT(x, Number(x, 0.0));
  Value* reflected = b_.CreateFMul(b_.CreateFSub(Number(x, 1.0), a), Number(x, 0.5));
  Value* z = b_.CreateSelect(small, b_.CreateFMul(a, a), reflected);
  Value* root = Sqrt(reflected);
  // The angle is base - (s + s tail), or s + s tail where x is above 1/2.
  Value* twice = b_.CreateFAdd(root, root);
  Value* s = b_.CreateSelect(small, x, b_.CreateSelect(negative, twice, b_.CreateFNeg(twice)));
  Split half_pi = HalfPi(IsDouble(x));
  auto base = [&](double value) {
    Value* other = b_.CreateSelect(negative, Number(x, 2 * value), Number(x, 0.0));
    return b_.CreateSelect(small, Number(x, value), other);
  };
  Value* tail = b_.CreateFMul(s, ArcSineTail(z));
  Value* rest = b_.CreateFSub(tail, base(half_pi.low));
  return b_.CreateFSub(b_.CreateFSub(base(half_pi.high), s), rest);
}

// atan(x) - x for 0 <= x <= 1.
Value* MathEmitter::ArcTangentTail(Value* x) {
  Value* z = b_.CreateFMul(x, x);
  Value* series =
      IsDouble(x)
          ? Polynomial(z, {-0x1.5555555555526p-2,  0x1.99999999955b4p-3,  -0x1.249249237f57dp-3,
                           0x1.c71c717fcf76dp-4,   -0x1.745d11ae74c7ap-4, 0x1.3b13669a2a047p-4,
                           -0x1.110e5126fd02dp-4,  0x1.e1bba66c1a4b8p-5,  -0x1.ae5e72c0e6984p-5,
                           0x1.82dad79d1736p-5,    -0x1.59a3ff2ac6667p-5, 0x1.2c2e5ccfd4e26p-5,
                           -0x1.e9fa0da6643e9p-6,  0x1.683cc98472e13p-6,  -0x1.c78fcd542af16p-7,
                           0x1.d7b927bbdceedp-8,   -0x1.7a399ad4364a2p-9, 0x1.b3facbcd7bb8ap-11,
                           -0x1.3f364d4b9695cp-13, 0x1.bbed9f7b04237p-17})
          : Polynomial(
                z, {-0x1.55553ep-2, 0x1.9991ecp-3, -0x1.24211ap-3, 0x1.c0946cp-4, -0x1.5825f2p-4,
                    0x1.da9c2ep-5, -0x1.fe7d24p-6, 0x1.6551e2p-7, -0x1.d5a1aap-10});
  return b_.CreateFMul(b_.CreateFMul(x, z), series);
}

Value* MathEmitter::Atan(Value* x) {
  Value* a = Abs(x);
  Value* above = b_.CreateFCmpOGT(a, Number(x, 1.0));
  // At infinity the quotient is 0.
  Value* r = b_.CreateSelect(above, b_.CreateFDiv(Number(x, 1.0), a), a);
  Value* tail = ArcTangentTail(r);
  Split half_pi = HalfPi(IsDouble(x));
  Value* inverse = b_.CreateFSub(Number(x, half_pi.high),
                                 b_.CreateFSub(r, b_.CreateFSub(Number(x, half_pi.low), tail)));
  Value* result = b_.CreateSelect(above, inverse, b_.CreateFAdd(r, tail));
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, x);
}

// The angle of the point (x, y): of the smaller by the larger, turned and mirrored into its octant.
Value* MathEmitter::Atan2(Value* y, Value* x) {
  Value *ax = Abs(x), *ay = Abs(y);
  Value* zero = Number(x, 0.0);
  Value* one = Number(x, 1.0);
  Value* steep = b_.CreateFCmpOGT(ay, ax);
  Value* lesser = b_.CreateSelect(steep, ax, ay);
  Value* greater = b_.CreateSelect(steep, ay, ax);
  // 0/0 is 0, inf/inf is 1.
  Value* origin = b_.CreateFCmpOEQ(greater, zero);
  Value* r = b_.CreateFDiv(lesser, b_.CreateSelect(origin, one, greater));
  Value* infinite = b_.CreateFCmpOEQ(lesser, llvm::ConstantFP::getInfinity(x->getType()));
  r = b_.CreateSelect(infinite, one, r);
  Value* tail = ArcTangentTail(r);
  // base + (r + tail) or base - (r + tail), base one of 0, pi/2, pi. Of x only the sign counts,
  // that of -0 too.
  llvm::Type* integer = IntegerType(x);
  Value* left = b_.CreateICmpSLT(b_.CreateBitCast(x, integer), llvm::ConstantInt::get(integer, 0));
  Value* minus = b_.CreateXor(steep, left);
  Value* signed_r = b_.CreateSelect(minus, b_.CreateFNeg(r), r);
  Value* signed_tail = b_.CreateSelect(minus, b_.CreateFNeg(tail), tail);
  Split half_pi = HalfPi(IsDouble(x));
  auto base = [&](double value) {
    return b_.CreateSelect(steep, Number(x, value),
                           b_.CreateSelect(left, Number(x, 2 * value), zero));
  };
  Value* rest = b_.CreateFAdd(base(half_pi.low), signed_tail);
  // The greater part first: r is at most 1, base 0 or more than that.
  Value* result = b_.CreateFAdd(base(half_pi.high), b_.CreateFAdd(signed_r, rest));
  result = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, y);
  Value* nan = b_.CreateFCmpUNO(x, y);
  return b_.CreateSelect(nan, llvm::ConstantFP::getNaN(x->getType()), result);
}

}  // namespace kiln::codegen

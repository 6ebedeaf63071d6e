// The inverse of the error function: x times a function of w = -log(1 - x^2), for which two
// polynomials do (Giles 2010), in w and in the square root of w.

#include "codegen/math/math.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

// By Sollya's fpminimax: of (erf_inv(x) / x - sqrt(pi) / 2) / w in w - kMiddle, and of
// erf_inv(x) / x - kFarBase in sqrt(w) - kFarMiddle, over the latter; the middles are such that the
// functions' values there are nearly floats.
constexpr double kNearF64[] = {
    0x1.f2c0a65e14dep-3,    -0x1.ca58e7d871841p-9,  -0x1.eba85da17c95fp-11, 0x1.6e7de96de906fp-13,
    -0x1.9811a0ba67525p-17, -0x1.f45bcc8e9418dp-21, 0x1.5ee4b8d24aba7p-22,  -0x1.07f11dd9b397p-25,
    -0x1.33ea141b349d6p-30, 0x1.6fda16208d7cfp-31,  -0x1.45618d12de128p-34, -0x1.2c421a1e42e39p-40,
    0x1.8bc0f9bf31c05p-40,  -0x1.8e06f3f53ca4dp-43, 0x1.f7ff583f08b6ap-52,  0x1.ace460295f32ap-49,
    -0x1.e8cb9818567d8p-52, 0x1.2f1d0ae210ce9p-57,  0x1.dd9ecfc6577e6p-58,  -0x1.46e5029c1bee7p-60,
    0x1.c656913c5bc7cp-66,  0x1.6edc5771ccbc5p-66,  -0x1.5c9c92a394b2ap-69, -0x1.53ead0bc2063ap-73,
    0x1.520e6ce74f711p-75,  0x1.8cca3653a2e35p-83,  -0x1.de938495e24e4p-83};
constexpr double kFarF64[] = {
    0x1.029ccee0bb625p0,    0x1.8da9b60ad63fcp-12,  -0x1.dc0d6607ca70bp-12, 0x1.479b072c8a9abp-13,
    -0x1.6eed723ca3648p-15, 0x1.97d4225bd9991p-17,  -0x1.179f1158648b3p-18, 0x1.0bd79b52d3071p-19,
    -0x1.2c9762c7f005cp-20, 0x1.3df944fc6a1d2p-21,  -0x1.19d0751b68e7ep-22, 0x1.799cd11937bd1p-24,
    -0x1.19a6cc149440bp-26, -0x1.b80a005c93cc3p-29, 0x1.2656d4ab38ae8p-28,  -0x1.0e9e936254c55p-29,
    0x1.10e8a8860bd93p-31,  -0x1.4d59814e18acap-37, -0x1.d096feb214a63p-35, 0x1.a60aa51d2f451p-36,
    -0x1.55751e56c07d2p-38, 0x1.aa5c4c45bfbeep-44,  0x1.8af1e3e7e9ffep-42,  -0x1.cb5f2e205337ap-43,
    0x1.71206118deac6p-45,  0x1.29a6c4bdd8117p-47,  -0x1.cbd5c13347825p-49};
constexpr double kNearF32[] = {0x1.f77766p-3,   -0x1.45d24ep-10, -0x1.8461d2p-10, 0x1.b02a76p-13,
                               -0x1.6841b2p-19, -0x1.b0e60ap-19, 0x1.ce423ep-22,  0x1.3cce88p-27,
                               -0x1.f38a9cp-28, 0x1.fd0ddap-32};
constexpr double kFarF32[] = {0x1.00ec6ep0,   0x1.d6207cp-8,  -0x1.635562p-8,  0x1.fe55a2p-9,
                              -0x1.51667cp-9, 0x1.4f88e8p-10, -0x1.5ff746p-12, -0x1.a97ba2p-14,
                              0x1.3ca5a2p-13, -0x1.b354p-15};

struct Parts {
  double limit;  // of w
  double middle, base, base_rest;
  std::span<const double> near;
  double far_middle, far_base;
  std::span<const double> far;
};
constexpr Parts kF64 = {8,        3.890625,  0x1.c5bf891b4ef6bp-1, -0x1.618f13eb7ca89p-55,
                        kNearF64, 4.4609375, 0x1.1389e7f548e24p2,  kFarF64};
constexpr Parts kF32 = {6,        2.953125,  0x1.c5bf8ap-1, -0x1.c96212p-26,
                        kNearF32, 3.1171875, 0x1.79a94cp1,  kFarF32};

}  // namespace

Value* MathEmitter::ErfInv(Value* x) {
  const Parts& p = IsDouble(x) ? kF64 : kF32;
  Value* one = Number(x, 1.0);
  Value* a = Abs(x);
  // 1 - a is exact where 1 - a^2 is small.
  Value* less = b_.CreateFSub(one, a);
  Value* w = b_.CreateFNeg(Log(MulAdd(less, a, less)));
  Value* near = b_.CreateFCmpOLT(w, Number(x, p.limit));
  auto by_part = [&](double near_value, double far_value) {
    return b_.CreateSelect(near, Number(x, near_value), Number(x, far_value));
  };
  Value* u = b_.CreateFSub(b_.CreateSelect(near, w, Sqrt(w)), by_part(p.middle, p.far_middle));
  Value* sum = by_part(p.near.back(), p.far.back());
  for (size_t k = p.near.size() - 1; k-- > 0;) {
    sum = MulAdd(sum, u, by_part(p.near[k], p.far[k]));
  }
  sum = MulAdd(sum, b_.CreateSelect(near, w, u), by_part(p.base_rest, 0));
  Value* result = b_.CreateFMul(x, b_.CreateFAdd(sum, by_part(p.base, p.far_base)));
  Value* infinity = llvm::ConstantFP::getInfinity(x->getType());
  Value* at_end = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, infinity, x);
  return b_.CreateSelect(b_.CreateFCmpOEQ(a, one), at_end, result);
}

}  // namespace kiln::codegen

// The error function.

#include "codegen/math/math.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen {

using llvm::Value;

// Coefficients by Sollya: of erf(x) / x - 1 by fpminimax; of Q by Remez' algorithm with the weight
// erfc(x), which leaves the error of 1 - e^-Q level.
Value* MathEmitter::Erf(Value* x) {
  if (UsesAvx512(x)) return ErfAvx512(x);
  bool wide = IsDouble(x);
  // From the limit on the result rounds to 1.
  Value* limit = Number(x, wide ? 6.0 : 4.0);
  Value* a = Abs(x);
  Value* clamped = b_.CreateSelect(b_.CreateFCmpOGT(a, limit), limit, a);
  Value* z = b_.CreateFMul(clamped, clamped);
  Value* small = b_.CreateFCmpOLT(a, Number(x, wide ? 1.0 : 0.875));
  Value *inner, *q;
  if (wide) {
    inner = Polynomial(z, {0x1.06eba8214db69p-3, -0x1.812746b0379fdp-2, 0x1.ce2f21a04360fp-4,
                           -0x1.b82ce312ab0a3p-6, 0x1.565bcd126d6edp-8, -0x1.c02db49229b1fp-11,
                           0x1.f9a3342152cf5p-14, -0x1.f4d31d85b4f19p-17, 0x1.b9ed71fb0f591p-20,
                           -0x1.5f8e4d240cd84p-23, 0x1.fc0d5c2ee7653p-27, -0x1.452ac54f53ebbp-30,
                           0x1.25ec3cb65512ap-34});
    q = Polynomial(clamped, {0x1.3020c5670d96ep-23, 0x1.20dd5c6ca8efbp0, 0x1.45f3f25fc8629p-1,
                             0x1.a4df55176a128p-4, -0x1.38bb03b1ce9dp-6, -0x1.17e231eca28b2p-12,
                             0x1.cbd039bd52947p-10, -0x1.496b9079cc8edp-11, 0x1.2eaffd5ae3292p-15,
                             0x1.3afee62297b34p-14, -0x1.8afb13c2ed355p-15, 0x1.20e63526d4284p-16,
                             -0x1.2f4a423a3e04ap-18, 0x1.de988fa4db2d3p-21, -0x1.1c2f02ace379ap-23,
                             0x1.ef645ad5af7dcp-27, -0x1.2beee7fffef49p-30, 0x1.c353fda235bd2p-35,
                             -0x1.3de8d5e325d69p-40});
  } else {
    inner = Polynomial(z, {0x1.06eba6p-3, -0x1.8127p-2, 0x1.ce1fd2p-4, -0x1.b6e418p-6,
                           0x1.4979b2p-8, -0x1.440b16p-11});
    q = Polynomial(clamped, {-0x1.47c5b6p-13, 0x1.2121fep0, 0x1.445e48p-1, 0x1.baab5p-4,
                             -0x1.9956b8p-6, 0x1.0df1f4p-8, -0x1.bc304ap-12, 0x1.52067cp-16});
  }
  inner = MulAdd(inner, a, a);
  Value* outer = b_.CreateFSub(Number(x, 1.0), ExpWithoutOverflow(b_.CreateFNeg(q)));
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, b_.CreateSelect(small, inner, outer),
                                  x);
}

}  // namespace kiln::codegen

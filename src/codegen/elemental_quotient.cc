// Quotients of many numbers by one.
#include <cmath>

#include "codegen/elemental_internal.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

// Operands of these sizes have quotients and remainders that are exact where they must be: for
// divisors between 2^-limit and 2^limit nothing on the way overflows, and what underflows is a
// remainder, which is a multiple of the least subnormal.
struct Limits {
  int divisor, dividend;
};
Limits LimitsOf(llvm::Type* type) {
  return type->getScalarType()->isDoubleTy() ? Limits{60, 900} : Limits{24, 100};
}

Value* Power(llvm::Type* type, int exponent) { return Number(type, std::ldexp(1.0, exponent)); }

}  // namespace

Reciprocal EmitReciprocal(Builder& b, Value* divisor) {
  llvm::Type* type = divisor->getType();
  Value* size = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, divisor);
  int limit = LimitsOf(type).divisor;
  Value* usable = b.CreateAnd(b.CreateFCmpOGE(size, Power(type, -limit)),
                              b.CreateFCmpOLE(size, Power(type, limit)));
  return {divisor, b.CreateFDiv(Number(type, 1), divisor), usable};
}

// r is 1/s rounded to nearest. q0 = x r is within 2 units of x/s, and q1 = q0 + (x - q0 s) r, which
// has the rounding of this sum and next to nothing beside, within one. So by Markstein's theorem
// ("Computation of elementary functions on the IBM RISC System/6000 processor", IBM J. Res. Dev.
// 34, 1990: with r correctly rounded, q within one unit and x - q s exact, as a fused operation
// gives it) q1 + (x - q1 s) r is rounded correctly.
Value* EmitDivide(Builder& b, Value* x, const Reciprocal& reciprocal) {
  llvm::Type* type = x->getType();
  int64_t width = 1;
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type)) width = vector->getNumElements();
  Value* s = Splat(b, reciprocal.divisor, width);
  Value* r = Splat(b, reciprocal.inverse, width);
  // Zeros have their own sign to keep, and come out right.
  llvm::Type* integer = elemental::IntOf(type);
  int limit = LimitsOf(type).dividend;
  Value* size = b.CreateBitCast(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x), integer);
  auto bits = [&](int exponent) { return b.CreateBitCast(Power(type, exponent), integer); };
  Value* inside =
      b.CreateICmpULE(b.CreateSub(size, bits(-limit)), b.CreateSub(bits(limit), bits(-limit)));
  inside = b.CreateOr(inside, b.CreateFCmpOEQ(x, Number(type, 0)));
  Value* all = width > 1 ? b.CreateAndReduce(inside) : inside;
  llvm::Function* function = b.GetInsertBlock()->getParent();
  auto block = [&](const char* name) {
    return llvm::BasicBlock::Create(b.getContext(), name, function);
  };
  llvm::BasicBlock *fast = block("divide.fast"), *slow = block("divide.slow"),
                   *done = block("divide.done");
  b.CreateCondBr(b.CreateAnd(all, reciprocal.usable), fast, slow);

  b.SetInsertPoint(fast);
  auto fma = [&](Value* u, Value* v, Value* w) {
    return b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {u, v, w});
  };
  Value* first = b.CreateFMul(x, r);
  Value* quotient = first;
  for (int step = 0; step < 2; ++step) {
    quotient = fma(fma(b.CreateFNeg(quotient), s, x), r, quotient);
  }
  quotient = b.CreateCopySign(quotient, first);
  b.CreateBr(done);

  b.SetInsertPoint(slow);
  Value* divided = b.CreateFDiv(x, s);
  b.CreateBr(done);

  b.SetInsertPoint(done);
  llvm::PHINode* result = b.CreatePHI(type, 2);
  result->addIncoming(quotient, fast);
  result->addIncoming(divided, slow);
  return result;
}

}  // namespace kiln::codegen

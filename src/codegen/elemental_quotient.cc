// Quotients of many numbers by one.
#include <cmath>

#include "codegen/control_flow.h"
#include "codegen/elemental_internal.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

// Operands of these sizes have quotients and remainders that are exact where they must be: for
// divisors between 2^-limit and 2^limit nothing overflows on the way, and only remainders
// underflow, which are multiples of the least subnormal. Divisors below 0 are rare.
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
  int limit = LimitsOf(type).divisor;
  Value* usable = b.CreateAnd(b.CreateFCmpOGE(divisor, Power(type, -limit)),
                              b.CreateFCmpOLE(divisor, Power(type, limit)));
  Value* inverse = b.CreateFDiv(Number(type, 1), divisor);
  Value* rest = b.CreateIntrinsic(llvm::Intrinsic::fma, {type},
                                  {b.CreateFNeg(inverse), divisor, Number(type, 1)});
  return {divisor, inverse, b.CreateFMul(rest, inverse), usable};
}

// r is 1/s rounded to nearest, and r + t is 1/s but for 2^-2p of it, p being the digits: so q0 =
// x r + (x t) is next to nothing but a rounding away from x/s, and within one unit. By Markstein's
// theorem ("Computation of elementary functions on the IBM RISC System/6000 processor", IBM J. Res.
// Dev. 34, 1990: with r correctly rounded, q within one unit and x - q s exact, as a fused
// operation gives it) q0 + (x - q0 s) r is rounded correctly.
std::vector<Value*> EmitDivide(Builder& b, std::vector<Value*> dividends,
                               const Reciprocal& reciprocal, Dividends known) {
  llvm::Type* type = dividends[0]->getType();
  int64_t width = 1;
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type)) width = vector->getNumElements();
  Value* s = Splat(b, reciprocal.divisor, width);
  Value* r = Splat(b, reciprocal.inverse, width);
  Value* t = Splat(b, reciprocal.rest, width);
  llvm::Type* integer = elemental::IntOf(type);
  int limit = LimitsOf(type).dividend;
  const bool may_be_negative = known == Dividends::kAny;
  // The bits of a size: twice where there are signs, which leaves them out.
  auto size = [&](Value* bits) { return may_be_negative ? b.CreateAdd(bits, bits) : bits; };
  auto power = [&](int exponent) { return size(b.CreateBitCast(Power(type, exponent), integer)); };
  Value *low = power(-limit), *range = b.CreateSub(power(limit), low);
  auto all_inside = [&](auto&& bits_of) -> Value* {
    if (known == Dividends::kIntegers) return b.getTrue();
    Value* farthest = nullptr;
    for (Value* x : dividends) {
      Value* bits = bits_of(b.CreateBitCast(x, integer));
      Value* beyond =
          may_be_negative ? b.CreateAdd(bits, b.CreateSub(bits, low)) : b.CreateSub(bits, low);
      farthest =
          farthest ? b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, farthest, beyond) : beyond;
    }
    Value* inside = b.CreateICmpULE(farthest, range);
    return width > 1 ? b.CreateAndReduce(inside) : inside;
  };
  llvm::BasicBlock *fast = NewBlock(b, "divide.fast"), *unusual = NewBlock(b, "divide.unusual"),
                   *slow = NewBlock(b, "divide.slow"), *done = NewBlock(b, "divide.done");
  b.CreateCondBr(b.CreateAnd(all_inside([](Value* bits) { return bits; }), reciprocal.usable), fast,
                 unusual);

  // Zeros come out right, but for their sign where they have one.
  b.SetInsertPoint(unusual);
  Value* zero = llvm::Constant::getNullValue(integer);
  Value* one = b.CreateBitCast(Power(type, 0), integer);
  Value* but_zeros = all_inside(
      [&](Value* bits) { return b.CreateSelect(b.CreateICmpEQ(bits, zero), one, bits); });
  b.CreateCondBr(b.CreateAnd(but_zeros, reciprocal.usable), fast, slow);

  b.SetInsertPoint(fast);
  auto fma = [&](Value* u, Value* v, Value* w) {
    return b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {u, v, w});
  };
  std::vector<Value*> quotients, divided;
  for (Value* x : dividends) {
    Value* quotient = fma(x, r, b.CreateFMul(x, t));
    quotients.push_back(fma(fma(b.CreateFNeg(quotient), s, x), r, quotient));
  }
  b.CreateBr(done);

  b.SetInsertPoint(slow);
  for (Value* x : dividends) divided.push_back(b.CreateFDiv(x, s));
  b.CreateBr(done);

  b.SetInsertPoint(done);
  for (size_t i = 0; i < dividends.size(); ++i) {
    dividends[i] = EmitPhi(b, {quotients[i], fast}, {divided[i], slow});
  }
  return dividends;
}

Bf16Reciprocal EmitBf16Reciprocal(Builder& b, Value* divisor) {
  llvm::Type* type = divisor->getType();
  Value* size = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, divisor);
  Value* small = b.CreateFCmpOLT(size, Power(type, -100));
  Value* large = b.CreateFCmpOGT(size, Power(type, 100));
  Value* scale = b.CreateSelect(small, Power(type, 64),
                                b.CreateSelect(large, Power(type, -64), Number(type, 1)));
  return {b.CreateFDiv(Number(type, 1), b.CreateFMul(divisor, scale)), scale};
}

// With the rounded inverse a quotient is off by 2^-22 of itself at most, and the true one is
// further from any number m halfway between two of bf16: x/s - m is (x - m s)/s, where x and s have
// integers of 8 bits and m one of 9, so it is 0 or 2^-17 of m at least. It is 0 among subnormals
// alone, where m is short enough to be found: what it is off by is less than half of the least f32.
// The scale keeps the inverse, and what is multiplied with it, among normal numbers.
Value* EmitDivide(Builder& b, Value* dividend, const Bf16Reciprocal& reciprocal,
                  MathOptions options) {
  int64_t width = 1;
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(dividend->getType())) {
    width = vector->getNumElements();
  }
  Value* scaled = b.CreateFMul(dividend, Splat(b, reciprocal.inverse, width));
  Value* quotient = b.CreateFMul(scaled, Splat(b, reciprocal.scale, width));
  return elemental::RoundToHalf(b, quotient, ElementType::kBF16, options, true);
}

}  // namespace kiln::codegen

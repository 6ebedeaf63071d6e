// The elementwise ops that are more than an instruction.
#include <utility>

#include "codegen/control_flow.h"
#include "codegen/elemental_internal.h"

namespace kiln::codegen::elemental {

using llvm::Value;

namespace {

const llvm::ConstantFP* ScalarConstant(Value* v) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (constant && v->getType()->isVectorTy()) constant = constant->getSplatValue();
  return constant ? llvm::dyn_cast<llvm::ConstantFP>(constant) : nullptr;
}

// max(x, y), or with `negative` zeros and the other order min(x, y).
Value* EmitFloatExtremum(Builder& b, Value* x, Value* y, bool maximum, MathOptions math) {
  if (ScalarConstant(x)) std::swap(x, y);
  if (const llvm::ConstantFP* c = ScalarConstant(y); c && !c->isNaN()) {
    // With a known y the comparison alone settles which one of equal zeros wins, and NaNs of x
    // stay.
    bool y_yields = c->isZero() && c->isNegative() == maximum;
    Value* take_y = maximum ? (y_yields ? b.CreateFCmpOLT(x, y) : b.CreateFCmpOLE(x, y))
                            : (y_yields ? b.CreateFCmpOGT(x, y) : b.CreateFCmpOGE(x, y));
    return b.CreateSelect(take_y, y, x);
  }
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  bool single = vector && vector->getNumElements() == 1;
  if (math.has_avx512 && x->getType()->getScalarType()->isFloatTy() && !single) {
    return MathEmitter(b, math).Extremum(x, y, maximum);
  }
  // select(x > y, x, y) is one instruction, and y where either is NaN. Equal values have the same
  // bits but for zeros, of which 'and' finds the positive one and 'or' the negative.
  Value* result = b.CreateSelect(maximum ? b.CreateFCmpOGT(x, y) : b.CreateFCmpOLT(x, y), x, y);
  llvm::Type* bits = IntOf(x->getType());
  Value* xi = b.CreateBitCast(x, bits);
  Value* yi = b.CreateBitCast(y, bits);
  Value* zero = b.CreateBitCast(maximum ? b.CreateAnd(xi, yi) : b.CreateOr(xi, yi), x->getType());
  result = b.CreateSelect(b.CreateFCmpOEQ(x, y), zero, result);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, result);
}

Value* EmitExtremum(Builder& b, Value* x, Value* y, ElementType type, bool maximum,
                    MathOptions math) {
  if (IsPred(type)) return maximum ? b.CreateOr(x, y) : b.CreateAnd(x, y);
  if (IsFloat(type)) return EmitFloatExtremum(b, x, y, maximum, math);
  Value* greater = IsSigned(type) ? b.CreateICmpSGT(x, y) : b.CreateICmpUGT(x, y);
  return b.CreateSelect(greater, maximum ? x : y, maximum ? y : x);
}

// x / y truncated, y being neither 0 nor (signed) -1. Machines divide no vectors of integers; a
// quotient of two integers of at most 32 bits is exact enough in f64 to truncate right.
Value* EmitQuotient(Builder& b, Value* x, Value* y, bool is_signed) {
  llvm::Type* t = x->getType();
  if (llvm::isa<llvm::Constant>(y) || !t->isVectorTy() || t->getScalarSizeInBits() > 32) {
    return is_signed ? b.CreateSDiv(x, y) : b.CreateUDiv(x, y);
  }
  bool narrow = t->getScalarSizeInBits() < 32;
  llvm::Type* i = WithScalar(narrow ? b.getInt32Ty() : t->getScalarType(), t);
  llvm::Type* f = WithScalar(narrow ? b.getFloatTy() : b.getDoubleTy(), t);
  auto to_float = [&](Value* v) {
    if (is_signed) return b.CreateSIToFP(b.CreateSExtOrTrunc(v, i), f);
    return narrow ? b.CreateSIToFP(b.CreateZExt(v, i), f) : b.CreateUIToFP(v, f);
  };
  Value* quotient = b.CreateFDiv(to_float(x), to_float(y));
  Value* whole = is_signed || narrow ? b.CreateFPToSI(quotient, i) : b.CreateFPToUI(quotient, i);
  return b.CreateTrunc(whole, t);
}

struct Divisor {
  Value* safe;       // never 0 nor (signed) -1
  Value* zero;       // where it was 0
  Value* minus_one;  // where it was -1, or null
};
Divisor MakeSafe(Builder& b, Value* y, bool is_signed) {
  llvm::Type* t = y->getType();
  Divisor d;
  d.zero = b.CreateICmpEQ(y, Number(t, 0));
  d.minus_one = is_signed ? b.CreateICmpEQ(y, Number(t, -1)) : nullptr;
  Value* bad = is_signed ? b.CreateOr(d.zero, d.minus_one) : d.zero;
  d.safe = b.CreateSelect(bad, Number(t, 1), y);
  return d;
}

}  // namespace

Value* EmitMaximum(Builder& b, Value* x, Value* y, ElementType type, MathOptions math) {
  return EmitExtremum(b, x, y, type, true, math);
}

Value* EmitMinimum(Builder& b, Value* x, Value* y, ElementType type, MathOptions math) {
  return EmitExtremum(b, x, y, type, false, math);
}

Value* EmitIntDivide(Builder& b, Value* x, Value* y, bool is_signed) {
  Divisor d = MakeSafe(b, y, is_signed);
  Value* quotient = EmitQuotient(b, x, d.safe, is_signed);
  quotient = b.CreateSelect(d.zero, Number(x->getType(), -1), quotient);
  return is_signed ? b.CreateSelect(d.minus_one, b.CreateNeg(x), quotient) : quotient;
}

Value* EmitIntRemainder(Builder& b, Value* x, Value* y, bool is_signed) {
  Divisor d = MakeSafe(b, y, is_signed);
  Value* rest = b.CreateSub(x, b.CreateMul(EmitQuotient(b, x, d.safe, is_signed), d.safe));
  // By the divisor 1 in their stead 0 and -1 both leave 0, which is right for -1.
  return b.CreateSelect(d.zero, x, rest);
}

Value* EmitIntPower(Builder& b, Value* x, Value* y, bool is_signed) {
  llvm::Type* t = x->getType();
  Value *zero = Number(t, 0), *one = Number(t, 1);
  Value* negative = is_signed ? b.CreateICmpSLT(y, zero) : nullptr;
  Value* count = negative ? b.CreateSelect(negative, zero, y) : y;
  std::vector<Value*> end = EmitWhile(
      b, {one, x, count},
      [&](const std::vector<Value*>& v) { return Any(b, b.CreateICmpNE(v[2], zero)); },
      [&](std::vector<Value*>& v) {
        Value* odd = b.CreateICmpNE(b.CreateAnd(v[2], one), zero);
        v[0] = b.CreateSelect(odd, b.CreateMul(v[0], v[1]), v[0]);
        v[1] = b.CreateMul(v[1], v[1]);
        v[2] = b.CreateLShr(v[2], one);
      });
  if (!negative) return end[0];
  Value* minus_one = Number(t, -1);
  Value* odd = b.CreateICmpNE(b.CreateAnd(y, one), zero);
  Value* inverse =
      b.CreateSelect(b.CreateICmpEQ(x, minus_one), b.CreateSelect(odd, minus_one, one), zero);
  inverse = b.CreateSelect(b.CreateICmpEQ(x, one), one, inverse);
  return b.CreateSelect(negative, inverse, end[0]);
}

}  // namespace kiln::codegen::elemental

namespace kiln::codegen {

bool HasExtremumOfNumbers(ElementType type) { return type == ElementType::kF32 || IsHalf(type); }

llvm::Value* EmitExtremumOfNumbers(Builder& b, llvm::Value* x, llvm::Value* y, bool maximum,
                                   MathOptions math) {
  if (math.has_avx512) return MathEmitter(b, math).ExtremumOfNumbers(x, y, maximum);
  // An instruction each, of which either gives its second operand where both are equal: zeros, of
  // which 'and' finds the positive one and 'or' the negative, or the same bits.
  auto greater = [&](llvm::Value* v, llvm::Value* w) {
    return b.CreateBitCast(
        b.CreateSelect(maximum ? b.CreateFCmpOGT(v, w) : b.CreateFCmpOLT(v, w), v, w),
        elemental::IntOf(x->getType()));
  };
  llvm::Value *first = greater(x, y), *second = greater(y, x);
  return b.CreateBitCast(maximum ? b.CreateAnd(first, second) : b.CreateOr(first, second),
                         x->getType());
}

}  // namespace kiln::codegen

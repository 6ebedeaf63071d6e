#include "codegen/elemental.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "codegen/elemental_internal.h"
#include "codegen/llvm_session.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {

using llvm::Value;

namespace elemental {

llvm::Type* WithScalar(llvm::Type* scalar, llvm::Type* like) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like);
  return vector ? llvm::FixedVectorType::get(scalar, vector->getNumElements()) : scalar;
}

llvm::Type* IntOf(llvm::Type* type) {
  return WithScalar(llvm::IntegerType::get(type->getContext(), type->getScalarSizeInBits()), type);
}

Value* Any(Builder& b, Value* condition) {
  return condition->getType()->isVectorTy() ? b.CreateOrReduce(condition) : condition;
}

}  // namespace elemental

using namespace elemental;  // NOLINT: the other half of this file

llvm::Type* RegisterType(llvm::LLVMContext& context, ElementType type) {
  if (IsPred(type)) return llvm::Type::getInt1Ty(context);
  if (IsHalf(type)) return llvm::Type::getFloatTy(context);
  return MemoryType(context, type);
}

llvm::Type* MemoryType(llvm::LLVMContext& context, ElementType type) {
  if (type == ElementType::kF32) return llvm::Type::getFloatTy(context);
  if (type == ElementType::kF64) return llvm::Type::getDoubleTy(context);
  return llvm::IntegerType::get(context, static_cast<unsigned>(ByteWidth(type) * 8));
}

Value* FromMemory(Builder& b, Value* value, ElementType type, MathOptions options) {
  if (IsHalf(type)) return UnpackHalf(b, value, type, options);
  return IsPred(type) ? b.CreateIsNotNull(value) : value;
}

Value* ToMemory(Builder& b, Value* value, ElementType type, MathOptions options) {
  if (IsHalf(type)) return PackHalf(b, value, type, options);
  if (!IsPred(type)) return value;
  return b.CreateZExt(value, WithScalar(b.getInt8Ty(), value->getType()));
}

llvm::Constant* ConstantOf(llvm::LLVMContext& context, const Literal& literal) {
  ElementType type = literal.shape().type();
  llvm::Type* target = RegisterType(context, type);
  if (IsHalf(type)) return llvm::ConstantFP::get(target, literal.AsDouble(0));
  if (type == ElementType::kF32) {
    uint32_t bits;
    std::memcpy(&bits, literal.data(), sizeof(bits));
    return llvm::ConstantFP::get(context,
                                 llvm::APFloat(llvm::APFloat::IEEEsingle(), llvm::APInt(32, bits)));
  }
  if (type == ElementType::kF64) {
    uint64_t bits;
    std::memcpy(&bits, literal.data(), sizeof(bits));
    return llvm::ConstantFP::get(context,
                                 llvm::APFloat(llvm::APFloat::IEEEdouble(), llvm::APInt(64, bits)));
  }
  return llvm::ConstantInt::get(target, static_cast<uint64_t>(literal.AsInt(0)), true);
}

Value* Splat(Builder& b, Value* scalar, int64_t width) {
  return width == 1 ? scalar : SplatShared(b, scalar, static_cast<unsigned>(width));
}

llvm::Constant* Number(llvm::Type* type, double value) {
  if (type->isFPOrFPVectorTy()) return llvm::ConstantFP::get(type, value);
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(static_cast<int64_t>(value)), true);
}

Value* EmitFma(Builder& b, Value* x, Value* y, Value* z) {
  return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()},
                           {WithoutNanBits(x), WithoutNanBits(y), WithoutNanBits(z)});
}

llvm::Constant* IdentityOf(llvm::LLVMContext& context, kernel::Combiner::Kind kind,
                           ElementType type) {
  using Kind = kernel::Combiner::Kind;
  llvm::Type* t = RegisterType(context, type);
  unsigned bits = t->getScalarSizeInBits();
  bool is_signed = IsSigned(type);
  switch (kind) {
    case Kind::kGeneral:
      return nullptr;
    case Kind::kSum:
      return IsFloat(type) ? llvm::ConstantFP::get(t, -0.0) : Number(t, 0);
    case Kind::kProduct:
      return Number(t, 1);
    case Kind::kMax:
      if (IsFloat(type)) return llvm::ConstantFP::getInfinity(t, true);
      return llvm::ConstantInt::get(
          t, is_signed ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getMinValue(bits));
    case Kind::kMin:
      if (IsFloat(type)) return llvm::ConstantFP::getInfinity(t, false);
      return llvm::ConstantInt::get(
          t, is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits));
    case Kind::kAnd:
      return llvm::Constant::getAllOnesValue(t);
    case Kind::kOr:
    case Kind::kXor:
      return llvm::Constant::getNullValue(t);
  }
  return nullptr;
}

void EmitOrder(Builder& b, ElementType type, size_t by, std::vector<Value*>& x,
               std::vector<Value*>& y) {
  const auto less = IsSigned(type) ? llvm::CmpInst::ICMP_SLT : llvm::CmpInst::ICMP_ULT;
  Value* swaps = b.CreateICmp(less, y[by], x[by]);
  for (size_t k = 0; k < x.size(); ++k) {
    Value* first = b.CreateSelect(swaps, y[k], x[k]);
    y[k] = b.CreateSelect(swaps, x[k], y[k]);
    x[k] = first;
  }
}

Value* EmitCombine(Builder& b, kernel::Combiner::Kind kind, ElementType type, Value* x, Value* y,
                   MathOptions math) {
  using Kind = kernel::Combiner::Kind;
  switch (kind) {
    case Kind::kGeneral:
      return nullptr;
    case Kind::kSum:
      if (IsPred(type)) return b.CreateOr(x, y);
      if (!IsFloat(type)) return b.CreateAdd(x, y);
      return b.CreateFAdd(WithoutNanBits(x), WithoutNanBits(y));
    case Kind::kProduct:
      if (IsPred(type)) return b.CreateAnd(x, y);
      if (!IsFloat(type)) return b.CreateMul(x, y);
      return b.CreateFMul(WithoutNanBits(x), WithoutNanBits(y));
    case Kind::kMax:
      return EmitMaximum(b, x, y, type, math);
    case Kind::kMin:
      return EmitMinimum(b, x, y, type, math);
    case Kind::kAnd:
      return b.CreateAnd(x, y);
    case Kind::kOr:
      return b.CreateOr(x, y);
    case Kind::kXor:
      return b.CreateXor(x, y);
  }
  return nullptr;
}

namespace {

// To a half type, with one rounding.
Value* ToHalf(Builder& b, Value* value, ElementType from, ElementType to, MathOptions options) {
  // An integer of which f32 does not hold all digits is above every f16 anyway.
  bool sticky = IsInteger(from) && BitWidth(from) >= 32 && to == ElementType::kBF16;
  if (sticky) {
    value = IntToSticky(b, value, IsSigned(from));
    from = BitWidth(from) == 64 ? ElementType::kF64 : ElementType::kF32;
  }
  if (from == ElementType::kF64) {
    value = NarrowToOdd(b, value);
  } else if (!IsFloat(from)) {
    value = EmitConvert(b, value, from, ElementType::kF32, options);
  }
  // All values of these are values of both types.
  if (BitWidth(from) == 8) return value;
  return RoundToHalf(b, value, to, options);
}

// Truncates, clamps, and makes NaN 0. Bounds are powers of two, so they are exact in any float.
Value* FloatToInt(Builder& b, Value* x, ElementType to) {
  llvm::Type* target = WithScalar(RegisterType(b.getContext(), to), x->getType());
  unsigned bits = target->getScalarSizeInBits();
  bool is_signed = IsSigned(to);
  double high = std::ldexp(1.0, static_cast<int>(is_signed ? bits - 1 : bits));
  Value* below = b.CreateFCmpOLT(x, Number(x->getType(), is_signed ? -high : 0));
  Value* above = b.CreateFCmpOGE(x, Number(x->getType(), high));
  Value* outside = b.CreateOr(b.CreateOr(below, above), b.CreateFCmpUNO(x, x));
  Value* safe = b.CreateSelect(outside, Number(x->getType(), 0), x);
  Value* result;
  if (bits < 32) {
    // Every machine converts to signed 32 bits.
    llvm::Type* wide = WithScalar(b.getInt32Ty(), x->getType());
    result = b.CreateTrunc(b.CreateFPToSI(safe, wide), target);
  } else {
    result = is_signed ? b.CreateFPToSI(safe, target) : b.CreateFPToUI(safe, target);
  }
  llvm::Constant* most = llvm::ConstantInt::get(
      target, is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits));
  result = b.CreateSelect(above, most, result);
  if (!is_signed) return result;
  return b.CreateSelect(below, llvm::ConstantInt::get(target, llvm::APInt::getSignedMinValue(bits)),
                        result);
}

}  // namespace

Value* EmitConvert(Builder& b, Value* value, ElementType from, ElementType to,
                   MathOptions options) {
  if (from == to) return value;
  if (IsHalf(from)) from = ElementType::kF32;
  if (IsHalf(to)) return ToHalf(b, value, from, to, options);
  if (from == to) return value;
  llvm::Type* target = WithScalar(RegisterType(b.getContext(), to), value->getType());
  if (IsPred(to)) {
    if (IsFloat(from)) return b.CreateFCmpUNE(value, Number(value->getType(), 0));
    return b.CreateIsNotNull(value);
  }
  if (IsPred(from)) {
    return b.CreateSelect(value, Number(target, 1), Number(target, 0));
  }
  if (IsFloat(from)) {
    if (!IsFloat(to)) return FloatToInt(b, value, to);
    return b.CreateFPCast(value, target);
  }
  if (IsFloat(to)) {
    // An unsigned type of less than 32 bits fits in a signed one, which every machine converts.
    if (!IsSigned(from) && BitWidth(from) < 32) {
      value = b.CreateZExt(value, WithScalar(b.getInt32Ty(), value->getType()));
      return b.CreateSIToFP(value, target);
    }
    return IsSigned(from) ? b.CreateSIToFP(value, target) : b.CreateUIToFP(value, target);
  }
  return b.CreateIntCast(value, target, IsSigned(from));
}

namespace {

Value* EmitCompare(Builder& b, Direction direction, Value* x, Value* y, ElementType type) {
  using P = llvm::CmpInst::Predicate;
  bool is_float = IsFloat(type), is_signed = IsSigned(type);
  switch (direction) {
    case Direction::kEq:
      return is_float ? b.CreateFCmpOEQ(x, y) : b.CreateICmpEQ(x, y);
    case Direction::kNe:
      return is_float ? b.CreateFCmpUNE(x, y) : b.CreateICmpNE(x, y);
    case Direction::kGe:
      return is_float ? b.CreateFCmpOGE(x, y)
                      : b.CreateICmp(is_signed ? P::ICMP_SGE : P::ICMP_UGE, x, y);
    case Direction::kGt:
      return is_float ? b.CreateFCmpOGT(x, y)
                      : b.CreateICmp(is_signed ? P::ICMP_SGT : P::ICMP_UGT, x, y);
    case Direction::kLe:
      return is_float ? b.CreateFCmpOLE(x, y)
                      : b.CreateICmp(is_signed ? P::ICMP_SLE : P::ICMP_ULE, x, y);
    case Direction::kLt:
      return is_float ? b.CreateFCmpOLT(x, y)
                      : b.CreateICmp(is_signed ? P::ICMP_SLT : P::ICMP_ULT, x, y);
  }
  return nullptr;
}

Value* TotalOrderKey(Builder& b, Value* x) {
  llvm::Type* t = IntOf(x->getType());
  unsigned bits = t->getScalarSizeInBits();
  Value* i = b.CreateBitCast(x, t);
  Value* sign = b.CreateAShr(i, llvm::ConstantInt::get(t, bits - 1));
  Value* most = llvm::ConstantInt::get(t, llvm::APInt::getSignedMaxValue(bits));
  return b.CreateXor(i, b.CreateAnd(sign, most));
}

// The sign changed, or cleared, and every other bit as it is. NVPTX turns the usual operations on
// the sign's bit into neg.f32 and abs.f32, which lose the bits of NaNs; so a negative number is the
// larger one of the two with the same magnitude, as integers without a sign.
Value* EmitNegate(Builder& b, Value* x, MathOptions options) {
  if (options.keeps_nans) return b.CreateFNeg(x);
  llvm::Type* t = IntOf(x->getType());
  Value* sign = llvm::ConstantInt::get(t, llvm::APInt::getSignMask(t->getScalarSizeInBits()));
  return b.CreateBitCast(b.CreateAdd(b.CreateBitCast(x, t), sign), x->getType());
}
Value* EmitAbs(Builder& b, Value* x, MathOptions options) {
  if (options.keeps_nans) return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  llvm::Type* t = IntOf(x->getType());
  Value* bits = b.CreateBitCast(x, t);
  Value* negated = b.CreateBitCast(EmitNegate(b, x, options), t);
  return b.CreateBitCast(b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, bits, negated),
                         x->getType());
}

Value* EmitMultiplyHigh(Builder& b, Value* x, Value* y, bool is_signed) {
  llvm::Type* t = x->getType();
  unsigned bits = t->getScalarSizeInBits();
  llvm::Type* wide = WithScalar(b.getIntNTy(2 * bits), t);
  Value* product =
      b.CreateMul(b.CreateIntCast(x, wide, is_signed), b.CreateIntCast(y, wide, is_signed));
  return b.CreateTrunc(b.CreateLShr(product, llvm::ConstantInt::get(wide, bits)), t);
}

// Away from zero where the fraction is larger than the random number is as one. That of a half type
// is no longer than a float's, and its 16 random digits are shifted to where they belong.
Value* EmitStochasticConvert(Builder& b, Value* x, Value* random, ElementType from,
                             ElementType to) {
  llvm::Type* t = x->getType();
  Value* magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* whole = b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, magnitude);
  Value* fraction = b.CreateFSub(magnitude, whole);
  // The fraction is below 1, so that the digits it has fit the unsigned type; those below them are
  // cut off. Infinities and NaNs have none, and are settled below.
  int digits = static_cast<int>(BitWidth(from));
  Value* fixed = b.CreateFMul(fraction, Number(t, std::ldexp(1.0, digits)));
  Value* number = b.CreateFCmpORD(fixed, fixed);
  fixed = b.CreateSelect(number, fixed, Number(t, 0));
  llvm::Type* unsigned_type = random->getType();
  Value* limit = digits < 32 ? b.CreateTrunc(b.CreateFPToSI(fixed, WithScalar(b.getInt32Ty(), t)),
                                             unsigned_type)
                             : b.CreateFPToUI(fixed, unsigned_type);
  Value* up = b.CreateICmpULT(random, limit);
  Value* toward = FloatToInt(b, x, to);
  // A number that has a fraction is far from the ends of the type, or beyond them.
  llvm::Type* target = toward->getType();
  unsigned bits = target->getScalarSizeInBits();
  double high = std::ldexp(1.0, static_cast<int>(bits) - 1);
  Value* inside =
      b.CreateAnd(b.CreateFCmpOGT(x, Number(t, -high)), b.CreateFCmpOLT(x, Number(t, high)));
  Value* most = llvm::ConstantInt::get(target, llvm::APInt::getSignedMaxValue(bits));
  inside = b.CreateAnd(inside, b.CreateICmpNE(toward, most));
  Value* step =
      b.CreateSelect(b.CreateFCmpOLT(x, Number(t, 0)), Number(target, -1), Number(target, 1));
  return b.CreateSelect(b.CreateAnd(up, inside), b.CreateAdd(toward, step), toward);
}

Value* EmitSign(Builder& b, Value* x, ElementType type) {
  llvm::Type* t = x->getType();
  if (IsFloat(type)) {
    Value* one = b.CreateCopySign(Number(t, 1), x);
    return b.CreateSelect(b.CreateFCmpUEQ(x, Number(t, 0)), x, one);
  }
  Value* positive =
      b.CreateZExt(IsSigned(type) ? b.CreateICmpSGT(x, Number(t, 0)) : b.CreateIsNotNull(x), t);
  if (!IsSigned(type)) return positive;
  return b.CreateSub(positive, b.CreateZExt(b.CreateICmpSLT(x, Number(t, 0)), t));
}

// Halves away from zero: the truncated part is exact.
Value* EmitRoundAfz(Builder& b, Value* x) {
  llvm::Type* t = x->getType();
  Value* whole = b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, x);
  Value* rest = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, b.CreateFSub(x, whole));
  Value* next = b.CreateFAdd(whole, b.CreateCopySign(Number(t, 1), x));
  return b.CreateSelect(b.CreateFCmpOGE(rest, Number(t, 0.5)), next, whole);
}

// s sqrt((x / s)^2 + (y / s)^2), with a power of two for s, so that the squares of the larger
// operand and of all that count beside it are normal numbers.
Value* EmitHypot(Builder& b, Value* x, Value* y) {
  llvm::Type* t = x->getType();
  const bool is_double = t->getScalarType()->isDoubleTy();
  const int limit = is_double ? 500 : 60, shift = is_double ? 600 : 80;
  auto power = [&](int exponent) { return Number(t, std::ldexp(1.0, exponent)); };
  x = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  y = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, y);
  Value* most = b.CreateSelect(b.CreateFCmpOGT(x, y), x, y);
  Value* is_large = b.CreateFCmpOGT(most, power(limit));
  Value* is_small = b.CreateFCmpOLT(most, power(-limit));
  auto scale = [&](int large) {
    Value* small = b.CreateSelect(is_small, power(-large), power(0));
    return b.CreateSelect(is_large, power(large), small);
  };
  Value *down = scale(-shift), *u = b.CreateFMul(x, down), *v = b.CreateFMul(y, down);
  Value* sum = b.CreateFAdd(b.CreateFMul(u, u), b.CreateFMul(v, v));
  Value* root = b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, sum);
  Value* infinity = llvm::ConstantFP::getInfinity(t, false);
  Value* is_infinite = b.CreateOr(b.CreateFCmpOEQ(x, infinity), b.CreateFCmpOEQ(y, infinity));
  return b.CreateSelect(is_infinite, infinity, b.CreateFMul(root, scale(shift)));
}

Value* EmitShift(Builder& b, Opcode opcode, Value* x, Value* count) {
  llvm::Type* t = x->getType();
  unsigned bits = t->getScalarSizeInBits();
  Value* last = Number(t, bits - 1);
  Value* inside = b.CreateICmpULT(count, Number(t, bits));
  Value* safe = b.CreateSelect(inside, count, last);
  if (opcode == Opcode::kShiftRightArithmetic) return b.CreateAShr(x, safe);
  Value* shifted = opcode == Opcode::kShiftLeft ? b.CreateShl(x, safe) : b.CreateLShr(x, safe);
  return b.CreateSelect(inside, shifted, Number(t, 0));
}

// The op in the type of registers.
Result<Value*> Compute(Builder& b, const kernel::Node& node, ElementType type,
                       std::span<Value* const> operands, MathOptions options) {
  using Kind = kernel::Combiner::Kind;
  MathEmitter math(b, options);
  auto intrinsic = [&](llvm::Intrinsic::ID id) { return b.CreateUnaryIntrinsic(id, operands[0]); };
  Value *x = operands[0], *y = operands.size() > 1 ? operands[1] : nullptr;
  llvm::Type* t = x->getType();
  switch (node.opcode) {
    case Opcode::kAbs:
      if (IsFloat(type)) return EmitAbs(b, x, options);
      if (!IsSigned(type)) return x;
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b.getFalse());
    case Opcode::kAcos:
      return math.Acos(x);
    case Opcode::kAcosh:
      return math.Acosh(x);
    case Opcode::kAsin:
      return math.Asin(x);
    case Opcode::kAsinh:
      return math.Asinh(x);
    case Opcode::kAtanh:
      return math.Atanh(x);
    case Opcode::kCbrt:
      return math.Cbrt(x);
    case Opcode::kCosh:
      return math.Cosh(x);
    case Opcode::kCosine:
      return math.Cos(x);
    case Opcode::kErf:
      return math.Erf(x);
    case Opcode::kErfc:
      return math.Erfc(x);
    case Opcode::kErfInv:
      return math.ErfInv(x);
    case Opcode::kLgamma:
      return math.Lgamma(x);
    case Opcode::kDigamma:
      return math.Digamma(x);
    case Opcode::kBesselI1e:
      return math.BesselI1e(x);
    case Opcode::kSine:
      return math.Sin(x);
    case Opcode::kSinh:
      return math.Sinh(x);
    case Opcode::kTan:
      return math.Tan(x);
    case Opcode::kImag:
      return Number(t, 0);
    case Opcode::kCeil:
      return intrinsic(llvm::Intrinsic::ceil);
    case Opcode::kFloor:
      return intrinsic(llvm::Intrinsic::floor);
    case Opcode::kRoundNearestEven:
      return intrinsic(llvm::Intrinsic::roundeven);
    case Opcode::kRoundNearestAfz:
      return EmitRoundAfz(b, x);
    case Opcode::kSqrt:
      return math.Sqrt(x);
    case Opcode::kRsqrt:
      return math.Rsqrt(x);
    case Opcode::kExponential:
      return node.at_most_zero ? math.ExpWithoutOverflow(x) : math.Exp(x);
    case Opcode::kExponentialMinusOne:
      return math.Expm1(x);
    case Opcode::kLog:
      return math.Log(x);
    case Opcode::kLogPlusOne:
      return math.Log1p(x);
    case Opcode::kLogistic:
      return math.Logistic(x);
    case Opcode::kTanh:
      return math.Tanh(x);
    case Opcode::kCopy:
    case Opcode::kReal:
      return x;
    case Opcode::kCountLeadingZeros:
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, x, b.getFalse());
    case Opcode::kPopcnt:
      return intrinsic(llvm::Intrinsic::ctpop);
    case Opcode::kIsFinite:
      return b.CreateFCmpOLT(intrinsic(llvm::Intrinsic::fabs),
                             llvm::ConstantFP::getInfinity(t, false));
    case Opcode::kNegate:
      return IsFloat(type) ? EmitNegate(b, x, options) : b.CreateNeg(x);
    case Opcode::kNot:
      return b.CreateNot(x);
    case Opcode::kSign:
      return EmitSign(b, x, type);
    case Opcode::kAdd:
      return EmitCombine(b, Kind::kSum, type, x, y, options);
    case Opcode::kMultiply:
      return EmitCombine(b, Kind::kProduct, type, x, y, options);
    case Opcode::kMaximum:
      return EmitMaximum(b, x, y, type, options);
    case Opcode::kMinimum:
      return EmitMinimum(b, x, y, type, options);
    case Opcode::kAnd:
      return b.CreateAnd(x, y);
    case Opcode::kOr:
      return b.CreateOr(x, y);
    case Opcode::kXor:
      return b.CreateXor(x, y);
    case Opcode::kSubtract:
      return IsFloat(type) ? b.CreateFSub(x, y) : b.CreateSub(x, y);
    case Opcode::kAtan2:
      return math.Atan2(x, y);
    case Opcode::kMulhi:
      return EmitMultiplyHigh(b, x, y, IsSigned(type));
    case Opcode::kStochasticConvert:
      return EmitStochasticConvert(b, x, y, type, node.type);
    case Opcode::kCompare:
      if (node.total_order) {
        // As integers: signed ones, of which the negative ones are turned round.
        x = TotalOrderKey(b, x), y = TotalOrderKey(b, y);
        type = type == ElementType::kF64 ? ElementType::kS64 : ElementType::kS32;
      }
      return EmitCompare(b, node.direction, x, y, type);
    case Opcode::kDivide:
      return IsFloat(type) ? b.CreateFDiv(x, y) : EmitIntDivide(b, x, y, IsSigned(type));
    case Opcode::kRemainder:
      return IsFloat(type) ? math.Fmod(x, y) : EmitIntRemainder(b, x, y, IsSigned(type));
    case Opcode::kShiftLeft:
    case Opcode::kShiftRightArithmetic:
    case Opcode::kShiftRightLogical:
      return EmitShift(b, node.opcode, x, y);
    case Opcode::kPower:
      if (!IsFloat(type)) return EmitIntPower(b, x, y, IsSigned(type));
      return math.Pow(x, y);
    case Opcode::kHypot:
      return EmitHypot(b, x, y);
    case Opcode::kMultiplyNoNan: {
      Value* zero = llvm::Constant::getNullValue(x->getType());
      return b.CreateSelect(b.CreateFCmpOEQ(x, zero), zero, b.CreateFMul(x, y));
    }
    case Opcode::kZeta:
      return math.Zeta(x, y);
    case Opcode::kPolygamma:
      return math.Polygamma(x, y);
    case Opcode::kClamp:
      return EmitMinimum(b, EmitMaximum(b, y, x, type, options), operands[2], type, options);
    case Opcode::kSelect:
      return b.CreateSelect(x, y, operands[2]);
    case Opcode::kConvert:
    case Opcode::kReducePrecision:
      break;  // in other types than the op's
    case Opcode::kComplex:
    case Opcode::kNextAfter:
      break;  // expanded before
#define KILN_OP(Name, ...) case Opcode::k##Name:
#define KILN_ELEMENTWISE_OP(...)
#include "ops/ops.def"
      break;
  }
  return Unimplemented(OpcodeName(node.opcode), ": no code for it inside a kernel");
}

bool IsArithmetic(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAdd:
    case Opcode::kSubtract:
    case Opcode::kMultiply:
    case Opcode::kDivide:
    case Opcode::kSqrt:
      return true;
    default:
      return false;
  }
}

Result<Value*> EmitWhole(Builder& b, const kernel::Node& node, std::span<Value* const> operands,
                         std::span<const ElementType> types, ElementType data, MathOptions math) {
  if (node.opcode == Opcode::kConvert) {
    return EmitConvert(b, operands[0], types[0], node.type, math);
  }
  if (node.opcode == Opcode::kReducePrecision) {
    return EmitReducePrecision(b, operands[0], data, node.exponent_bits, node.mantissa_bits, math);
  }
  const bool exact = HasTrait(node.opcode, kExact);
  std::vector<Value*> numbers(operands.begin(), operands.end());
  if (!exact && !node.total_order) std::ranges::transform(numbers, numbers.begin(), WithoutNanBits);
  Result<Value*> result = Compute(b, node, data, numbers, math);
  if (!result.ok() || !IsHalf(node.type) || exact) return result;
  return RoundToHalf(b, *result, node.type, math, IsArithmetic(node.opcode));
}

}  // namespace

Value* RoundedTo(Builder& b, Value* value, ElementType type, MathOptions options) {
  return IsHalf(type) ? RoundToHalf(b, value, type, options) : value;
}

Result<Value*> EmitOp(Builder& b, const kernel::Node& node, std::span<Value* const> operands,
                      std::span<const ElementType> types, MathOptions math) {
  const OpInfo& info = InfoOf(node.opcode);
  ElementType data = types.size() == 3 ? types[1] : types.empty() ? node.type : types[0];
  for (ElementType t : types) {
    if (!IsKernelType(t)) {
      return Unimplemented(info.name, ": no compiled code for ", TypeName(t));
    }
  }
  Arity arity = ArityOf(node.opcode);
  if (node.opcode == Opcode::kBitcastConvert && operands.size() == 1) {
    llvm::Type* to = WithScalar(MemoryType(b.getContext(), node.type), operands[0]->getType());
    Value* bits = b.CreateBitCast(ToMemory(b, operands[0], data, math), to);
    return FromMemory(b, bits, node.type, math);
  }
  if (!IsElementwise(node.opcode) || !(info.types & TypeMaskOf(data)) ||
      arity.min != static_cast<int64_t>(operands.size())) {
    return Internal(info.name, " of ", operands.size(), " operands of type ", TypeName(data),
                    " is no elementwise op");
  }
  return EmitShared(b, node, operands, types, data,
                    [&](Builder& at, std::span<Value* const> values) {
                      return EmitWhole(at, node, values, types, data, math);
                    });
}

}  // namespace kiln::codegen

#include "codegen/math/math.h"

#include <bit>

#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen {

using llvm::Value;

Value* MathEmitter::Number(Value* like, double value) {
  return llvm::ConstantFP::get(like->getType(), value);
}

llvm::Type* MathEmitter::IntegerType(Value* like_float) {
  llvm::Type* type = like_float->getType();
  llvm::Type* scalar = b_.getIntNTy(type->getScalarSizeInBits());
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type)) {
    return llvm::FixedVectorType::get(scalar, vector->getNumElements());
  }
  return scalar;
}

Value* MathEmitter::Integer(Value* like_float, uint64_t value) {
  return llvm::ConstantInt::get(IntegerType(like_float), value);
}

llvm::Type* MathEmitter::DoubleLike(Value* x) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (!vector) return b_.getDoubleTy();
  return llvm::FixedVectorType::get(b_.getDoubleTy(), vector->getNumElements());
}

Value* MathEmitter::Abs(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }

// One rounding where the target has the instruction, two where it has not: a call of libm's fma
// would cost more than all the rest.
Value* MathEmitter::MulAdd(Value* x, Value* y, Value* z) {
  if (options_.has_fma) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
  }
  return b_.CreateFAdd(b_.CreateFMul(x, y), z);
}

Value* MathEmitter::Polynomial(Value* x, std::initializer_list<double> coefficients) {
  const double* begin = coefficients.begin();
  const double* c = coefficients.end();
  Value* sum = Number(x, *--c);
  while (c != begin) sum = MulAdd(sum, x, Number(x, *--c));
  return sum;
}

// x = n ln2 + r, |r| <= ln2/2 and a little. ln2 is cut in two so that n times the first part is
// exact (Cody and Waite 1980). Adding 1.5 * 2^23 (2^52) rounds to an integer and leaves it in the
// low bits, also where x is NaN.
MathEmitter::Reduced MathEmitter::ReduceByLn2(Value* x) {
  bool wide = IsDouble(x);
  Value* magic = Number(x, wide ? 0x1.8p52 : 0x1.8p23);
  Value* shifted = MulAdd(x, Number(x, 0x1.71547652b82fep0), magic);
  Value* n_float = b_.CreateFSub(shifted, magic);
  Value* n = b_.CreateSub(b_.CreateBitCast(shifted, IntegerType(x)),
                          b_.CreateBitCast(magic, IntegerType(x)));
  Value* minus = b_.CreateFNeg(n_float);
  double high = wide ? 0x1.62e42feep-1 : 0x1.63p-1;
  double low = wide ? 0x1.a39ef35793c76p-33 : -0x1.bd0105c610ca8p-13;
  Value* r = MulAdd(minus, Number(x, high), x);
  r = MulAdd(minus, Number(x, low), r);
  return {n, n_float, r};
}

// 2^n for n in the range of normal exponents.
Value* MathEmitter::PowerOfTwo(Value* n) {
  bool wide = n->getType()->getScalarSizeInBits() == 64;
  llvm::Type* type = n->getType();
  llvm::Type* scalar = wide ? b_.getDoubleTy() : b_.getFloatTy();
  llvm::Type* result = scalar;
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type)) {
    result = llvm::FixedVectorType::get(scalar, vector->getNumElements());
  }
  Value* biased = b_.CreateAdd(n, llvm::ConstantInt::get(type, wide ? 1023 : 127));
  return b_.CreateBitCast(b_.CreateShl(biased, llvm::ConstantInt::get(type, wide ? 52 : 23)),
                          result);
}

// 2^n in two factors: the first product stays normal, the second rounds once.
Value* MathEmitter::TimesPowerOfTwo(Value* x, Value* n) {
  Value* half = b_.CreateAShr(n, Integer(x, 1));
  Value* rest = b_.CreateSub(n, half);
  return b_.CreateFMul(b_.CreateFMul(x, PowerOfTwo(half)), PowerOfTwo(rest));
}

// (e^r - 1 - r) / r^2 for |r| < 0.35, by minimax polynomials (Sollya's fpminimax).
Value* MathEmitter::ExpTail(Value* r) {
  if (IsDouble(r)) {
    return Polynomial(
        r, {0x1.000000000000ap-1, 0x1.55555555554fep-3, 0x1.55555555506acp-5, 0x1.1111111126b2ep-7,
            0x1.6c16c1847c94ap-10, 0x1.a01a012ffa32bp-13, 0x1.a019994c1311ep-16,
            0x1.71df18b9a1062p-19, 0x1.28ae10fca39b6p-22, 0x1.ad937209d2824p-26});
  }
  return Polynomial(r,
                    {0x1.fffffap-2, 0x1.555492p-3, 0x1.555a26p-5, 0x1.123988p-7, 0x1.694cd2p-10});
}

MathEmitter::ScaledExp MathEmitter::ExpInTwo(Value* x) {
  Reduced e = ReduceByLn2(x);
  Value* r2 = b_.CreateFMul(e.r, e.r);
  return {b_.CreateFAdd(MulAdd(ExpTail(e.r), r2, e.r), Number(x, 1.0)), e.n};
}

// Beyond the limits every result is infinite or 0; a NaN fails both tests and stays. A 0 that came
// of a product that underflows would cost ten times the rest, and masks make many of them.
Value* MathEmitter::Exp(Value* x) {
  if (UsesAvx512(x)) return ExpAvx512(x, 0, true);
  bool wide = IsDouble(x);
  Value *high = Number(x, wide ? 711.0 : 90.0), *zero = Number(x, 0.0);
  Value* vanishes = b_.CreateFCmpOLT(x, Number(x, wide ? -746.0 : -104.0));
  x = b_.CreateSelect(b_.CreateFCmpOGT(x, high), high, x);
  ScaledExp e = ExpInTwo(b_.CreateSelect(vanishes, zero, x));
  return b_.CreateSelect(vanishes, zero, TimesPowerOfTwo(e.sum, e.n));
}

// A power 32 (64) higher is normal for all results but 0: one factor of it, and one constant, which
// rounds.
Value* MathEmitter::ExpWithoutOverflow(Value* x) {
  if (UsesAvx512(x)) return ExpAvx512(x, 0, false);
  bool wide = IsDouble(x);
  Value* zero = Number(x, 0.0);
  Value* vanishes = b_.CreateFCmpOLT(x, Number(x, wide ? -746.0 : -104.0));
  ScaledExp e = ExpInTwo(b_.CreateSelect(vanishes, zero, x));
  Value* higher = b_.CreateFMul(e.sum, PowerOfTwo(b_.CreateAdd(e.n, Integer(x, wide ? 64 : 32))));
  Value* result = b_.CreateFMul(higher, Number(x, wide ? 0x1p-64 : 0x1p-32));
  return b_.CreateSelect(vanishes, zero, result);
}

Value* MathEmitter::ExpOfModerate(Value* x) {
  ScaledExp e = ExpInTwo(x);
  return b_.CreateFMul(e.sum, PowerOfTwo(e.n));
}

// Beyond the limit half of e^a is infinite; up to it a quarter is not, and has one factor.
Value* MathEmitter::QuarterOfExp(Value* a) {
  if (UsesAvx512(a)) return ExpAvx512(a, -2, true);
  Value* limit = Number(a, IsDouble(a) ? 710.6 : 89.5);
  ScaledExp e = ExpInTwo(b_.CreateSelect(b_.CreateFCmpOGT(a, limit), limit, a));
  return b_.CreateFMul(e.sum, PowerOfTwo(b_.CreateSub(e.n, Integer(a, 2))));
}

// 2^(n-1) (e^r - 1) + (2^(n-1) - 1/2), which does not overflow before the whole does.
Value* MathEmitter::HalfOfExpm1(Value* x) {
  Reduced e = ReduceByLn2(x);
  Value* r2 = b_.CreateFMul(e.r, e.r);
  Value* less_one = MulAdd(ExpTail(e.r), r2, e.r);
  Value* scale = PowerOfTwo(b_.CreateSub(e.n, Integer(x, 1)));
  return MulAdd(scale, less_one, b_.CreateFSub(scale, Number(x, 0.5)));
}

Value* MathEmitter::Expm1(Value* x) {
  bool wide = IsDouble(x);
  Value* original = x;
  Value* high = Number(x, wide ? 710.0 : 89.0);
  Value* low = Number(x, wide ? -40.0 : -20.0);
  x = b_.CreateSelect(b_.CreateFCmpOGT(x, high), high, x);
  x = b_.CreateSelect(b_.CreateFCmpOLT(x, low), low, x);
  Value* half = HalfOfExpm1(x);
  // Near 0 the result is the operand itself; this keeps the sign of -0 and all subnormals.
  Value* tiny = b_.CreateFCmpOLT(Abs(original), Number(x, wide ? 0x1p-54 : 0x1p-25));
  return b_.CreateSelect(tiny, original, b_.CreateFAdd(half, half));
}

// (log(1 + f) - f) / f^2 for -1/4 <= f < 1/2, of f32.
Value* MathEmitter::LogTail(Value* f) {
  return Polynomial(f, {-0.5, 0x1.5555a4p-2, -0x1.000042p-2, 0x1.996966p-3, -0x1.54ef16p-3,
                        0x1.2886b8p-3, -0x1.0d93f4p-3, 0x1.aca08ep-4, -0x1.713e36p-5});
}

Value* MathEmitter::Log(Value* x) {
  if (UsesAvx512(x)) return LogAvx512(x, nullptr, nullptr);
  bool wide = IsDouble(x);
  // Subnormals are scaled up to have an exponent.
  Value* small = b_.CreateFCmpOLT(x, Number(x, wide ? 0x1p-1022 : 0x1p-126));
  Value* scaled = b_.CreateSelect(small, b_.CreateFMul(x, Number(x, wide ? 0x1p54 : 0x1p25)), x);
  Value* power = b_.CreateSelect(small, Number(x, wide ? -54.0 : -25.0), Number(x, 0.0));
  return LogOfNormal(x, scaled, power, nullptr);
}

// log(x), where x = 2^power (scaled + rest scaled), scaled not subnormal; rest (or null) far
// below 1.
Value* MathEmitter::LogOfNormal(Value* x, Value* scaled, Value* power, Value* rest) {
  bool wide = IsDouble(x);
  // Counted from the bits of sqrt(1/2), the exponent is k and the mantissa within [sqrt(1/2),
  // sqrt(2)); of f32 from 3/4.
  uint64_t root = wide ? 0x3fe6a09e667f3bcdull : 0x3f400000ull;
  uint64_t mantissa = wide ? 0x000fffffffffffffull : 0x007fffffull;
  Value* bits = b_.CreateSub(b_.CreateBitCast(scaled, IntegerType(x)), Integer(x, root));
  Value* k = b_.CreateAShr(bits, Integer(x, wide ? 52 : 23));
  Value* m_bits = b_.CreateAdd(b_.CreateAnd(bits, Integer(x, mantissa)), Integer(x, root));
  Value* f = b_.CreateFSub(b_.CreateBitCast(m_bits, x->getType()), Number(x, 1.0));
  Value* k_float = b_.CreateSIToFP(k, x->getType());
  if (power) k_float = b_.CreateFAdd(k_float, power);
  // k ln2 in two parts, the small one added first.
  Value* low = b_.CreateFMul(k_float, Number(x, wide ? 1.90821492927058770002e-10 : kLn2Low));
  if (rest) low = b_.CreateFAdd(low, rest);
  Value* sum;
  if (wide) {
    // log(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)),  s = f / (2 + f); coefficients of R by Remez, as
    // published with FreeBSD's msun (e_log.c).
    Value* s = b_.CreateFDiv(f, b_.CreateFAdd(f, Number(x, 2.0)));
    Value* z = b_.CreateFMul(s, s);
    Value* series =
        Polynomial(z, {6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                       2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                       1.479819860511658591e-01});
    Value* half_square = b_.CreateFMul(b_.CreateFMul(f, f), Number(x, 0.5));
    Value* tail = MulAdd(s, MulAdd(series, z, half_square), low);
    sum = b_.CreateFSub(f, b_.CreateFSub(half_square, tail));
  } else {
    sum = b_.CreateFAdd(f, MulAdd(b_.CreateFMul(f, f), LogTail(f), low));
  }
  Value* result = MulAdd(k_float, Number(x, wide ? 6.93147180369123816490e-01 : kLn2High), sum);
  // log(0) = -inf, log(inf) = inf, and NaN below 0.
  Value* infinity = llvm::ConstantFP::getInfinity(x->getType());
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, infinity), infinity, result);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, Number(x, 0.0)),
                           llvm::ConstantFP::getInfinity(x->getType(), true), result);
  Value* invalid = b_.CreateFCmpULT(x, Number(x, 0.0));
  return b_.CreateSelect(invalid, llvm::ConstantFP::getNaN(x->getType()), result);
}

Value* MathEmitter::Log1p(Value* x) { return Log1pPlus(x, nullptr); }

// log(1 + x) + power ln2. What rounding 1 + x takes off comes back as log(u + l) = log(u) + l / u.
Value* MathEmitter::Log1pPlus(Value* x, Value* power) {
  Value* one = Number(x, 1.0);
  Value* u = b_.CreateFAdd(x, one);
  // The larger first, by which the sum's error is exact.
  Value* above = b_.CreateFCmpOGT(x, one);
  Value* larger = b_.CreateSelect(above, x, one);
  Value* smaller = b_.CreateSelect(above, one, x);
  Value* lost = b_.CreateFSub(smaller, b_.CreateFSub(u, larger));
  Value* rest = b_.CreateFDiv(lost, u);
  Value* result = UsesAvx512(x) ? LogAvx512(u, power, rest) : LogOfNormal(u, u, power, rest);
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, x);
}

Value* MathEmitter::Tanh(Value* x) {
  if (UsesAvx512(x)) return TanhAvx512(x);
  bool wide = IsDouble(x);
  Value* a = Abs(x);
  // From here on the result rounds to 1.
  Value* limit = Number(x, wide ? 20.0 : 10.0);
  a = b_.CreateSelect(b_.CreateFCmpOGT(a, limit), limit, a);
  // Near 0 the half is the operand itself.
  Value* t = HalfOfExpm1(b_.CreateFAdd(a, a));
  Value* result = b_.CreateFDiv(t, b_.CreateFAdd(t, Number(x, 1.0)));
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, x);
}

Value* MathEmitter::Logistic(Value* x) {
  if (UsesAvx512(x)) return LogisticAvx512(x);
  Value* one = Number(x, 1.0);
  // e^-|x| neither overflows nor loses the small results.
  Value* e = ExpWithoutOverflow(b_.CreateFNeg(Abs(x)));
  Value* numerator = b_.CreateSelect(b_.CreateFCmpOLT(x, Number(x, 0.0)), e, one);
  return b_.CreateFDiv(numerator, b_.CreateFAdd(one, e));
}

Value* MathEmitter::Sqrt(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x); }

Value* MathEmitter::Rsqrt(Value* x) { return b_.CreateFDiv(Number(x, 1.0), Sqrt(x)); }

}  // namespace kiln::codegen

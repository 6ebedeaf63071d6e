// pow and fmod: functions whose special cases outweigh their arithmetic.

#include "codegen/control_flow.h"
#include "codegen/math/math.h"
#include "codegen/math/pairs.h"

namespace kiln::codegen {

using llvm::Value;

// log(x) of a positive number in about 100 bits.
FloatPair MathEmitter::LogInHundredBits(Value* x) {
  PairArithmetic pairs(b_, options_.has_fma);
  auto constant = [&](double high, double low = 0) {
    return FloatPair{Number(x, high), Number(x, low)};
  };
  // x = 2^k m, sqrt(1/2) <= m < sqrt(2), as in Log.
  Value* small = b_.CreateFCmpOLT(x, Number(x, 0x1p-1022));
  Value* scaled = b_.CreateSelect(small, b_.CreateFMul(x, Number(x, 0x1p54)), x);
  Value* correction = b_.CreateSelect(small, Number(x, -54.0), Number(x, 0.0));
  uint64_t root = 0x3fe6a09e667f3bcdull;
  Value* bits = b_.CreateSub(b_.CreateBitCast(scaled, IntegerType(x)), Integer(x, root));
  Value* k =
      b_.CreateFAdd(b_.CreateSIToFP(b_.CreateAShr(bits, Integer(x, 52)), x->getType()), correction);
  Value* m = b_.CreateBitCast(
      b_.CreateAdd(b_.CreateAnd(bits, Integer(x, 0x000fffffffffffffull)), Integer(x, root)),
      x->getType());
  // log(m) = 2 (s + s^3/3 + s^5/5 + ...), s = (m - 1) / (m + 1): s and s^3/3 in pairs, the rest,
  // below 2^-10 of it, in doubles.
  FloatPair denominator = pairs.Sum(m, Number(x, 1.0));
  FloatPair s = pairs.Divide(b_.CreateFSub(m, Number(x, 1.0)), denominator);
  FloatPair z = pairs.Multiply(s, s);
  Value* tail = Polynomial(z.high, {1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17,
                                    1.0 / 19, 1.0 / 21, 1.0 / 23});
  FloatPair series = pairs.Add(constant(0.2, -0x1.999999999999ap-57), pairs.Product(z.high, tail));
  series =
      pairs.Add(constant(0x1.5555555555555p-2, 0x1.5555555555555p-56), pairs.Multiply(z, series));
  series = pairs.Add(constant(1.0), pairs.Multiply(z, series));
  FloatPair log_m = pairs.Multiply(s, series);
  log_m = {b_.CreateFAdd(log_m.high, log_m.high), b_.CreateFAdd(log_m.low, log_m.low)};
  FloatPair k_ln2 = pairs.Multiply(FloatPair{k, Number(x, 0.0)},
                                   constant(0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56));
  return pairs.Add(k_ln2, log_m);
}

// e^(high + low) = e^high (1 + low).
Value* MathEmitter::ExpOfPair(FloatPair x) {
  Value* e = Exp(x.high);
  Value* corrected = MulAdd(e, x.low, e);
  // Where e overflows, the correction would make a NaN of it.
  Value* finite = b_.CreateFCmpOLT(e, llvm::ConstantFP::getInfinity(e->getType()));
  return b_.CreateSelect(finite, corrected, e);
}

// |x|^y for f64 by log in about 100 bits: the error of y log|x| is multiplied by up to 745 on its
// way through exp, which takes 10 bits more than a double has.
Value* MathEmitter::PowF64(Value* x, Value* y) {
  PairArithmetic pairs(b_, options_.has_fma);
  FloatPair log_x = LogInHundredBits(x);
  // Beyond the range of results the product is cut off.
  Value* limited =
      b_.CreateSelect(b_.CreateFCmpOGT(Abs(y), Number(y, 0x1p80)),
                      b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, Number(y, 0x1p80), y), y);
  return ExpOfPair(pairs.Multiply(log_x, FloatPair{limited, Number(y, 0.0)}));
}

Value* MathEmitter::Pow(Value* x, Value* y) {
  llvm::Type* type = x->getType();
  Value* one = Number(x, 1.0);
  Value* zero = Number(x, 0.0);
  Value* infinity = llvm::ConstantFP::getInfinity(type);
  Value* a = Abs(x);
  Value* result;
  if (IsDouble(x)) {
    result = PowF64(a, y);
  } else {
    // A double's log and exp have the bits to spare that pow in f32 needs.
    llvm::Type* wide = DoubleLike(x);
    Value* log = Log(b_.CreateFPExt(a, wide));
    result = b_.CreateFPTrunc(Exp(b_.CreateFMul(log, b_.CreateFPExt(y, wide))), type);
  }
  // |x| = 0 and |x| = inf: 0 or infinity by the sign of y.
  Value* y_negative = b_.CreateFCmpOLT(y, zero);
  Value* at_zero = b_.CreateSelect(y_negative, infinity, zero);
  Value* at_infinity = b_.CreateSelect(y_negative, zero, infinity);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(a, zero), at_zero, result);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(a, infinity), at_infinity, result);
  // |y| = inf: 0 or infinity by whether |x| is below 1, and 1 at |x| = 1.
  Value* shrinks = b_.CreateXor(b_.CreateFCmpOLT(a, one), y_negative);
  Value* at_y_infinity =
      b_.CreateSelect(b_.CreateFCmpOEQ(a, one), one, b_.CreateSelect(shrinks, zero, infinity));
  Value* y_infinite = b_.CreateFCmpOEQ(Abs(y), infinity);
  result = b_.CreateSelect(b_.CreateAnd(y_infinite, b_.CreateFCmpOEQ(a, a)), at_y_infinity, result);
  // Negative x: the sign by whether y is odd; NaN where y is no integer.
  Value* whole = b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, y);
  Value* is_whole = b_.CreateFCmpOEQ(whole, y);
  Value* half = b_.CreateFMul(y, Number(y, 0.5));
  Value* is_odd = b_.CreateAnd(
      is_whole, b_.CreateFCmpONE(b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, half), half));
  Value* sign = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, one, x);
  Value* signed_result = b_.CreateFMul(result, b_.CreateSelect(is_odd, sign, one));
  Value* negative = b_.CreateFCmpOLT(x, zero);
  Value* finite = b_.CreateFCmpONE(a, infinity);
  Value* invalid = b_.CreateAnd(b_.CreateAnd(negative, finite), b_.CreateNot(is_whole));
  result = b_.CreateSelect(invalid, llvm::ConstantFP::getNaN(type), signed_result);
  // NaN in either, but for pow(1, y) = 1 and pow(x, 0) = 1.
  Value* has_nan = b_.CreateFCmpUNO(x, y);
  result = b_.CreateSelect(has_nan, llvm::ConstantFP::getNaN(type), result);
  Value* is_one = b_.CreateOr(b_.CreateFCmpOEQ(x, one), b_.CreateFCmpOEQ(y, zero));
  return b_.CreateSelect(is_one, one, result);
}

Value* MathEmitter::Fmod(Value* x, Value* y) {
  llvm::Type* type = x->getType();
  Value* r = Abs(x);
  Value* d = Abs(y);
  Value* infinity = llvm::ConstantFP::getInfinity(type);
  Value* zero = Number(x, 0.0);
  // Lanes that have no quotient take no part in the loops.
  Value* valid = b_.CreateAnd(b_.CreateFCmpOLT(r, infinity), b_.CreateFCmpOGT(d, zero));
  r = b_.CreateSelect(valid, r, zero);
  Value* divisor = b_.CreateSelect(valid, d, Number(x, 1.0));
  auto any = [&](Value* lanes) {
    return lanes->getType()->isVectorTy() ? b_.CreateOrReduce(lanes) : lanes;
  };

  // The largest divisor * 2^i that is not above r: doubling is exact.
  llvm::BasicBlock *before = b_.GetInsertBlock(), *grow = NewBlock(b_, "fmod.grow"),
                   *shrink = NewBlock(b_, "fmod.shrink"), *done = NewBlock(b_, "fmod.done");
  b_.CreateBr(grow);
  b_.SetInsertPoint(grow);
  llvm::PHINode* m = b_.CreatePHI(type, 2);
  m->addIncoming(divisor, before);
  Value* twice = b_.CreateFAdd(m, m);
  Value* fits = b_.CreateFCmpOLE(twice, r);
  Value* grown = b_.CreateSelect(fits, twice, m);
  m->addIncoming(grown, grow);
  b_.CreateCondBr(any(fits), grow, shrink);

  // Long division: r < 2 m always, so that every difference is exact, and so is every halving down
  // to the divisor.
  b_.SetInsertPoint(shrink);
  llvm::PHINode* rest = b_.CreatePHI(type, 2);
  llvm::PHINode* step = b_.CreatePHI(type, 2);
  rest->addIncoming(r, grow);
  step->addIncoming(grown, grow);
  Value* less = b_.CreateSelect(b_.CreateFCmpOGE(rest, step), b_.CreateFSub(rest, step), rest);
  Value* more = b_.CreateFCmpOGT(step, divisor);
  Value* halved = b_.CreateSelect(more, b_.CreateFMul(step, Number(x, 0.5)), step);
  rest->addIncoming(less, shrink);
  step->addIncoming(halved, shrink);
  b_.CreateCondBr(any(more), shrink, done);

  b_.SetInsertPoint(done);
  Value* result = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, less, x);
  // fmod(x, inf) = x for finite x; NaN for a NaN, an infinite x or a zero y.
  Value* whole = b_.CreateAnd(b_.CreateFCmpOLT(Abs(x), infinity), b_.CreateFCmpOEQ(d, infinity));
  result = b_.CreateSelect(whole, x, result);
  Value* invalid =
      b_.CreateOr(b_.CreateFCmpUNO(x, y),
                  b_.CreateOr(b_.CreateFCmpOEQ(Abs(x), infinity), b_.CreateFCmpOEQ(d, zero)));
  return b_.CreateSelect(invalid, llvm::ConstantFP::getNaN(type), result);
}

}  // namespace kiln::codegen

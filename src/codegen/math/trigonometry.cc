// sin, cos and tan. The operand is reduced to |r| <= pi/4, with as many quarter turns as it has,
// for all operands: those of everyday sizes by a pi/2 cut in parts of which multiples are exact
// (Cody and Waite 1980), the others by the digits of 2/pi that matter (Payne and Hanek 1983), lane
// by lane and only where a vector has such lanes. Coefficients are minimax ones with rounding in
// mind (Brisebarre and Chevillard 2007), by Sollya's fpminimax, of (sin(r) - r) / r^3 and (cos(r) -
// 1 + r^2/2) / r^4 on [0, pi/4].

#include "codegen/control_flow.h"
#include "codegen/math/math.h"
#include "codegen/math/pairs.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

// Operands below are reduced by parts of pi/2: the number of quarter turns has 16 (20) bits.
constexpr double kLimitF32 = 0x1p16, kLimitF64 = 0x1p20;

// pi/2 in parts of 33 bits, 53 in the last one.
constexpr double kHalfPi[] = {0x1.921fb544p0, 0x1.0b4611a6p-34, 0x1.3198a2ep-69,
                              0x1.b839a252049c1p-104};
// The remainder of the first; and pi/2 in parts of 53 bits, and in parts of 24.
constexpr double kHalfPiRest = 0x1.0b4611a626331p-34;
constexpr double kHalfPiHigh = 0x1.921fb54442d18p0, kHalfPiLow = 0x1.1a62633145c07p-54;
constexpr double kHalfPiF32[] = {0x1.921fb6p0, -0x1.777a5cp-25, -0x1.ee59dap-50};

// 64 zeros, and the first 1216 digits of 2/pi.
constexpr uint64_t kTwoOverPi[] = {0,
                                   0xa2f9836e4e441529,
                                   0xfc2757d1f534ddc0,
                                   0xdb6295993c439041,
                                   0xfe5163abdebbc561,
                                   0xb7246e3a424dd2e0,
                                   0x06492eea09d1921c,
                                   0xfe1deb1cb129a73e,
                                   0xe88235f52ebb4484,
                                   0xe99c7026b45f7e41,
                                   0x3991d639835339f4,
                                   0x9c845f8bbdf9283b,
                                   0x1ff897ffde05980f,
                                   0xef2f118b5a0a6d1f,
                                   0x6d367ecf27cb09b7,
                                   0x4f463f669e5fea2d,
                                   0x7527bac7ebe5f17b,
                                   0x3d0739f78a5292ea,
                                   0x6bfb5fb11f8d5d08,
                                   0x56033046fc7b6bab};

llvm::GlobalVariable* DigitsOfTwoOverPi(llvm::Module& module) {
  constexpr const char* kName = "kiln.two_over_pi";
  if (auto* known = module.getGlobalVariable(kName, true)) return known;
  auto* digits = llvm::ConstantDataArray::get(module.getContext(), kTwoOverPi);
  return new llvm::GlobalVariable(module, digits->getType(), true,
                                  llvm::GlobalValue::PrivateLinkage, digits, kName);
}

}  // namespace

// The quarter turns (modulo 4, as i64) and the rest of a double that is not below 2^16, as scalars.
MathEmitter::Turns MathEmitter::ReduceLarge(Value* x) {
  llvm::IntegerType *i64 = b_.getInt64Ty(), *i128 = b_.getInt128Ty();
  auto number = [&](uint64_t n) { return b_.getInt64(n); };
  Value* bits = b_.CreateBitCast(x, i64);
  // x = m 2^(e - 1075). The digits of 2/pi of weights that make whole turns of m count for nothing:
  // those before position e - 1077. 192 digits from there on, times m modulo 2^192, have the
  // quarter turns in the upper two bits, and below them more digits of the rest than are needed:
  // no double is closer to a multiple of pi/2 than 2^-61.
  Value* e = b_.CreateLShr(bits, number(52));
  Value* m =
      b_.CreateOr(b_.CreateAnd(bits, number((uint64_t{1} << 52) - 1)), number(uint64_t{1} << 52));
  // Infinities have the exponent 2047, and lanes that are not large come here too: what is read for
  // them does not matter.
  e = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, e, number(2046));
  e = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, e, number(1077 - 64));
  Value* position = b_.CreateSub(e, number(1077 - 64));
  Value* first = b_.CreateLShr(position, number(6));
  Value* shift = b_.CreateAnd(position, number(63));
  llvm::GlobalVariable* digits = DigitsOfTwoOverPi(*b_.GetInsertBlock()->getModule());
  Value* words[4];
  for (uint64_t k = 0; k < 4; ++k) {
    Value* at = b_.CreateGEP(i64, digits, b_.CreateAdd(first, number(k)));
    words[k] = b_.CreateAlignedLoad(i64, at, llvm::Align(8));
  }
  auto wide = [&](Value* v) { return b_.CreateZExt(v, i128); };
  auto wide_number = [&](uint64_t n) { return llvm::ConstantInt::get(i128, n); };
  Value* aligned[3];
  for (int k = 0; k < 3; ++k) {
    Value* both = b_.CreateOr(b_.CreateShl(wide(words[k]), wide_number(64)), wide(words[k + 1]));
    aligned[k] =
        b_.CreateTrunc(b_.CreateLShr(b_.CreateShl(both, wide(shift)), wide_number(64)), i64);
  }
  Value* product = b_.CreateShl(wide(b_.CreateMul(m, aligned[0])), wide_number(64));
  product = b_.CreateAdd(product, b_.CreateMul(wide(m), wide(aligned[1])));
  product = b_.CreateAdd(product,
                         b_.CreateLShr(b_.CreateMul(wide(m), wide(aligned[2])), wide_number(64)));
  // To the nearest quarter turn; the rest is a signed fraction of one.
  Value* half = b_.CreateShl(wide_number(1), wide_number(125));
  Value* quarters = b_.CreateLShr(b_.CreateAdd(product, half), wide_number(126));
  Value* rest = b_.CreateShl(product, wide_number(2));
  Value* negative = b_.CreateICmpSLT(rest, wide_number(0));
  Value* magnitude = b_.CreateSelect(negative, b_.CreateNeg(rest), rest);
  Value* zeros = b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, magnitude, b_.getFalse());
  magnitude = b_.CreateShl(magnitude, zeros);
  // 53 bits of it, and 53 more.
  Value* high_bits = b_.CreateTrunc(b_.CreateLShr(magnitude, wide_number(75)), i64);
  Value* low_bits = b_.CreateTrunc(
      b_.CreateAnd(b_.CreateLShr(magnitude, wide_number(22)), wide_number((uint64_t{1} << 53) - 1)),
      i64);
  llvm::Type* f64 = b_.getDoubleTy();
  Value* exponent = b_.CreateSub(number(1023 - 53), b_.CreateTrunc(zeros, i64));
  Value* scale = b_.CreateBitCast(b_.CreateShl(exponent, number(52)), f64);
  scale = b_.CreateSelect(negative, b_.CreateFNeg(scale), scale);
  FloatPair fraction;
  fraction.high = b_.CreateFMul(b_.CreateSIToFP(high_bits, f64), scale);
  fraction.low =
      b_.CreateFMul(b_.CreateSIToFP(low_bits, f64), b_.CreateFMul(scale, Number(scale, 0x1p-53)));
  FloatPair result =
      PairArithmetic(b_, options_.has_fma)
          .Multiply(fraction, {Number(scale, kHalfPiHigh), Number(scale, kHalfPiLow)});
  Value* finite = b_.CreateFCmpOLT(x, llvm::ConstantFP::getInfinity(f64));
  Value* nan = llvm::ConstantFP::getNaN(f64);
  return {b_.CreateTrunc(quarters, i64), b_.CreateSelect(finite, result.high, nan),
          b_.CreateSelect(finite, result.low, nan)};
}

// A double as two floats of the type.
MathEmitter::Turns MathEmitter::InHalves(Value* x, llvm::Type* type) {
  Value* high = b_.CreateFPTrunc(x, type);
  Value* low = b_.CreateFPTrunc(b_.CreateFSub(x, b_.CreateFPExt(high, x->getType())), type);
  return {nullptr, high, low};
}

MathEmitter::Turns MathEmitter::ReduceModerateF32(Value* x) {
  if (!options_.has_fma) {
    // Products with 33 bits are exact in doubles.
    Value* wide = b_.CreateFPExt(x, DoubleLike(x));
    Value* magic = Number(wide, 0x1.8p52);
    Value* shifted = MulAdd(wide, Number(wide, 0x1.45f306dc9c883p-1), magic);
    Value* n = b_.CreateFSub(shifted, magic);
    Value* r = b_.CreateFSub(wide, b_.CreateFMul(n, Number(wide, kHalfPi[0])));
    r = b_.CreateFSub(r, b_.CreateFMul(n, Number(wide, kHalfPiRest)));
    Value* quarters = b_.CreateTrunc(b_.CreateBitCast(shifted, IntegerType(wide)), IntegerType(x));
    Turns rest = InHalves(r, x->getType());
    return {quarters, rest.high, rest.low};
  }
  Value* magic = Number(x, 0x1.8p23);
  Value* shifted = MulAdd(x, Number(x, 0x1.45f306dc9c883p-1), magic);
  Value* minus = b_.CreateFNeg(b_.CreateFSub(shifted, magic));
  // The first difference is exact. What rounding the product and the second one takes off is found
  // exactly, though the product may be the larger: the difference is a multiple of its last place.
  Value* r = MulAdd(minus, Number(x, kHalfPiF32[0]), x);
  FloatPair product = PairArithmetic(b_, true).Product(minus, Number(x, kHalfPiF32[1]));
  FloatPair sum = PairArithmetic(b_, true).FastSum(r, product.high);
  Value* low = b_.CreateFAdd(sum.low, product.low);
  low = MulAdd(minus, Number(x, kHalfPiF32[2]), low);
  Value* high = sum.high;
  return {b_.CreateBitCast(shifted, IntegerType(x)), high, low};
}

MathEmitter::Turns MathEmitter::ReduceModerateF64(Value* x) {
  PairArithmetic pairs(b_, options_.has_fma);
  Value* magic = Number(x, 0x1.8p52);
  Value* shifted = MulAdd(x, Number(x, 0x1.45f306dc9c883p-1), magic);
  Value* n = b_.CreateFSub(shifted, magic);
  auto multiple = [&](int part) { return b_.CreateFMul(n, Number(x, kHalfPi[part])); };
  // Products of 20 and 33 bits are exact, and so is the first difference.
  Value* r = b_.CreateFSub(x, multiple(0));
  FloatPair second = pairs.Sum(r, b_.CreateFNeg(multiple(1)));
  FloatPair third = pairs.Sum(second.high, b_.CreateFNeg(multiple(2)));
  Value* low = b_.CreateFAdd(second.low, b_.CreateFSub(third.low, multiple(3)));
  FloatPair rest = pairs.FastSum(third.high, low);
  return {b_.CreateBitCast(shifted, IntegerType(x)), rest.high, rest.low};
}

// x is not negative.
MathEmitter::Turns MathEmitter::ReduceByQuarterTurns(Value* x) {
  bool wide = IsDouble(x);
  llvm::Type* type = x->getType();
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  Turns moderate = wide ? ReduceModerateF64(x) : ReduceModerateF32(x);
  // True of a NaN too, which would come out right either way.
  Value* large = b_.CreateFCmpUGE(x, Number(x, wide ? kLimitF64 : kLimitF32));
  llvm::BasicBlock *before = b_.GetInsertBlock(), *each = NewBlock(b_, "turns.large"),
                   *done = NewBlock(b_, "turns.done");
  b_.CreateCondBr(vector ? b_.CreateOrReduce(large) : large, each, done);

  // All lanes of such a vector, one by one.
  b_.SetInsertPoint(each);
  auto phi = [&](Value* first) {
    llvm::PHINode* node = b_.CreatePHI(first->getType(), 2);
    node->addIncoming(first, before);
    return node;
  };
  llvm::PHINode* lane = vector ? phi(b_.getInt64(0)) : nullptr;
  llvm::PHINode* quarters = vector ? phi(moderate.quarters) : nullptr;
  llvm::PHINode* high = vector ? phi(moderate.high) : nullptr;
  llvm::PHINode* low = vector ? phi(moderate.low) : nullptr;
  Value* operand = vector ? b_.CreateExtractElement(x, lane) : x;
  Value* is_large = vector ? b_.CreateExtractElement(large, lane) : large;
  Turns turns = ReduceLarge(wide ? operand : b_.CreateFPExt(operand, b_.getDoubleTy()));
  if (!wide) {
    turns.quarters = b_.CreateTrunc(turns.quarters, b_.getInt32Ty());
    Turns rest = InHalves(turns.high, b_.getFloatTy());
    turns.high = rest.high;
    turns.low = rest.low;
  }
  Turns slow = turns;
  if (vector) {
    auto put = [&](Value* to, Value* value) {
      Value* old = b_.CreateExtractElement(to, lane);
      return b_.CreateInsertElement(to, b_.CreateSelect(is_large, value, old), lane);
    };
    slow.quarters = put(quarters, turns.quarters);
    slow.high = put(high, turns.high);
    slow.low = put(low, turns.low);
    llvm::BasicBlock* last = b_.GetInsertBlock();
    Value* next = b_.CreateAdd(lane, b_.getInt64(1));
    lane->addIncoming(next, last);
    quarters->addIncoming(slow.quarters, last);
    high->addIncoming(slow.high, last);
    low->addIncoming(slow.low, last);
    b_.CreateCondBr(b_.CreateICmpULT(next, b_.getInt64(vector->getNumElements())), each, done);
  } else {
    b_.CreateBr(done);
  }
  llvm::BasicBlock* after = b_.GetInsertBlock();
  b_.SetInsertPoint(done);
  auto merge = [&](Value* fast, Value* other) {
    return EmitPhi(b_, {fast, before}, {other, after});
  };
  Turns result;
  result.quarters = merge(moderate.quarters, slow.quarters);
  result.high = merge(moderate.high, slow.high);
  result.low = merge(moderate.low, slow.low);
  return result;
}

// sin and cos of high + low within a quarter turn.
MathEmitter::SinCos MathEmitter::SinCosOf(const Turns& r) {
  Value* x = r.high;
  Value* z = b_.CreateFMul(x, x);
  Value* zz = b_.CreateFMul(z, z);
  Value* half = b_.CreateFMul(z, Number(x, 0.5));
  Value* w = b_.CreateFSub(Number(x, 1.0), half);
  Value *sine, *cosine;
  if (IsDouble(x)) {
    sine = Polynomial(z, {-0x1.5555555555548p-3, 0x1.111111110f75bp-7, -0x1.a01a019bf1b83p-13,
                          0x1.71de355e8d576p-19, -0x1.ae5e5402e8afap-26, 0x1.5d8e10c326fc7p-33});
    cosine = Polynomial(z, {0x1.555555555554bp-5, -0x1.6c16c16c15014p-10, 0x1.a01a019c8ee9ap-16,
                            -0x1.27e4f7f14c56ap-22, 0x1.1ee9db8f44131p-29, -0x1.8fa65b619cf42p-37});
  } else {
    sine = Polynomial(z, {-0x1.555556p-3, 0x1.111164p-7, -0x1.a04864p-13, 0x1.77e104p-19});
    cosine = Polynomial(z, {0x1.55554ap-5, -0x1.6c0c2ap-10, 0x1.99e90cp-16});
  }
  // sin(h + l) = sin(h) + l cos(h), cos(h + l) = cos(h) - l sin(h).
  Value* sine_rest = MulAdd(b_.CreateFMul(x, z), sine, b_.CreateFMul(r.low, w));
  Value* lost = b_.CreateFSub(b_.CreateFSub(Number(x, 1.0), w), half);
  Value* cosine_rest = MulAdd(zz, cosine, b_.CreateFSub(lost, b_.CreateFMul(x, r.low)));
  return {b_.CreateFAdd(x, sine_rest), b_.CreateFAdd(w, cosine_rest)};
}

namespace {

Value* IsOdd(llvm::IRBuilderBase& b, Value* quarters) {
  Value* one = llvm::ConstantInt::get(quarters->getType(), 1);
  return b.CreateIsNotNull(b.CreateAnd(quarters, one));
}

// x with its sign changed where bit `bit` of the integer is set, and where that of `sign` is.
Value* FlipSign(llvm::IRBuilderBase& b, Value* x, Value* quarters, unsigned bit, Value* sign) {
  llvm::Type* type = quarters->getType();
  unsigned width = type->getScalarSizeInBits();
  Value* flips = b.CreateShl(quarters, llvm::ConstantInt::get(type, width - 1 - bit));
  if (sign) flips = b.CreateXor(flips, b.CreateBitCast(sign, type));
  flips = b.CreateAnd(flips, llvm::ConstantInt::get(type, llvm::APInt::getSignMask(width)));
  return b.CreateBitCast(b.CreateXor(b.CreateBitCast(x, type), flips), x->getType());
}

}  // namespace

Value* MathEmitter::Sin(Value* x) {
  Turns turns = ReduceByQuarterTurns(Abs(x));
  SinCos f = SinCosOf(turns);
  Value* result = b_.CreateSelect(IsOdd(b_, turns.quarters), f.cosine, f.sine);
  return FlipSign(b_, result, turns.quarters, 1, x);
}

Value* MathEmitter::Cos(Value* x) {
  Turns turns = ReduceByQuarterTurns(Abs(x));
  SinCos f = SinCosOf(turns);
  Value* result = b_.CreateSelect(IsOdd(b_, turns.quarters), f.sine, f.cosine);
  Value* one = llvm::ConstantInt::get(turns.quarters->getType(), 1);
  return FlipSign(b_, result, b_.CreateAdd(turns.quarters, one), 1, nullptr);
}

Value* MathEmitter::Tan(Value* x) {
  Turns turns = ReduceByQuarterTurns(Abs(x));
  SinCos f = SinCosOf(turns);
  Value* odd = IsOdd(b_, turns.quarters);
  Value* result =
      b_.CreateFDiv(b_.CreateSelect(odd, f.cosine, f.sine), b_.CreateSelect(odd, f.sine, f.cosine));
  return FlipSign(b_, result, turns.quarters, 0, x);
}

}  // namespace kiln::codegen

// f16 and bf16. In registers they are f32 with exactly a value of the type: results are rounded at
// once, so fused ops round like ops in separate kernels, and ops without arithmetic cost nothing.
#include "codegen/elemental_internal.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen::elemental {

using llvm::Value;

namespace {

// Parts of an f32's bits.
constexpr uint32_t kAbs = 0x7fffffff, kInfinity = 0x7f800000, kQuiet = 0x00400000;
// The least normal f16 and 2^16, the first power of two above all of them.
constexpr uint32_t kLeastF16 = 0x38800000, kAboveF16 = 0x47800000;
// The difference of the exponents' biases of f32 and f16, and of their infinities' exponents.
constexpr uint32_t kRebiasF16 = 112u << 23, kRebiasInfinityF16 = 224u << 23;

Value* Bits(Builder& b, Value* x) { return b.CreateBitCast(x, IntOf(x->getType())); }
Value* Word(Value* like, uint32_t word) { return llvm::ConstantInt::get(like->getType(), word); }
llvm::Type* FloatLike(Builder& b, Value* x) { return WithScalar(b.getFloatTy(), x->getType()); }

// Rounded to the bits above the lowest `drop`, of a finite number's bits.
Value* RoundBits(Builder& b, Value* bits, unsigned drop) {
  Value* odd = b.CreateAnd(b.CreateLShr(bits, Word(bits, drop)), Word(bits, 1));
  Value* up = b.CreateAdd(b.CreateAdd(bits, Word(bits, (1u << (drop - 1)) - 1)), odd);
  return b.CreateAnd(up, Word(bits, ~((1u << drop) - 1)));
}

// A NaN with the upper bits of its payload, and quiet.
Value* QuietBits(Builder& b, Value* bits, unsigned drop) {
  return b.CreateOr(b.CreateAnd(bits, Word(bits, ~((1u << drop) - 1))), Word(bits, kQuiet));
}

// The same for vectors of AVX-512, where adding to some lanes costs no more than to all.
Value* RoundBitsByMask(Builder& b, Value* bits, unsigned drop) {
  Value* up = b.CreateAdd(bits, Word(bits, (1u << (drop - 1)) - 1));
  Value* is_odd = b.CreateIsNotNull(b.CreateAnd(bits, Word(bits, 1u << drop)));
  up = b.CreateSelect(is_odd, b.CreateAdd(up, Word(bits, 1)), up);
  return b.CreateAnd(up, Word(bits, ~((1u << drop) - 1)));
}

// Bits that are rounded up carry into the exponent, and at worst to infinity; the NaN whose payload
// is all ones would become a zero.
Value* RoundToBf16(Builder& b, Value* x, MathOptions options, bool has_short_nans) {
  Value* bits = Bits(b, x);
  Value* rounded = options.has_avx512 && x->getType()->isVectorTy() ? RoundBitsByMask(b, bits, 16)
                                                                    : RoundBits(b, bits, 16);
  if (!has_short_nans) {
    rounded = b.CreateSelect(b.CreateFCmpUNO(x, x), QuietBits(b, bits, 16), rounded);
  }
  return b.CreateBitCast(rounded, x->getType());
}

// Adding 0.5 leaves a multiple of 2^-24, the least f16, in the lowest bits of numbers below 2^-14.
Value* AddHalf(Builder& b, Value* magnitude) {
  return b.CreateFAdd(b.CreateBitCast(magnitude, FloatLike(b, magnitude)),
                      Number(FloatLike(b, magnitude), 0.5));
}

Value* RoundToF16ByBits(Builder& b, Value* x) {
  Value* bits = Bits(b, x);
  Value* magnitude = b.CreateAnd(bits, Word(bits, kAbs));
  Value* sign = b.CreateXor(bits, magnitude);
  Value* rounded = RoundBits(b, magnitude, 13);
  rounded = b.CreateSelect(b.CreateICmpULT(rounded, Word(bits, kAboveF16)), rounded,
                           Word(bits, kInfinity));
  Value* half = Number(x->getType(), 0.5);
  Value* subnormal = Bits(b, b.CreateFSub(AddHalf(b, magnitude), half));
  rounded = b.CreateSelect(b.CreateICmpULT(magnitude, Word(bits, kLeastF16)), subnormal, rounded);
  rounded = b.CreateSelect(b.CreateICmpUGT(magnitude, Word(bits, kInfinity)),
                           QuietBits(b, magnitude, 13), rounded);
  return b.CreateBitCast(b.CreateOr(rounded, sign), x->getType());
}

Value* PackF16ByBits(Builder& b, Value* x) {
  Value* bits = Bits(b, x);
  Value* magnitude = b.CreateAnd(bits, Word(bits, kAbs));
  Value* sign = b.CreateLShr(b.CreateXor(bits, magnitude), Word(bits, 16));
  Value* rebias = b.CreateSelect(b.CreateICmpULT(magnitude, Word(bits, kAboveF16)),
                                 Word(bits, kRebiasF16), Word(bits, kRebiasInfinityF16));
  Value* packed = b.CreateLShr(b.CreateSub(magnitude, rebias), Word(bits, 13));
  Value* half = Bits(b, Number(x->getType(), 0.5));
  Value* subnormal = b.CreateSub(Bits(b, AddHalf(b, magnitude)), half);
  packed = b.CreateSelect(b.CreateICmpULT(magnitude, Word(bits, kLeastF16)), subnormal, packed);
  return b.CreateTrunc(b.CreateOr(packed, sign), WithScalar(b.getInt16Ty(), x->getType()));
}

Value* UnpackF16ByBits(Builder& b, Value* bits) {
  Value* wide = b.CreateZExt(bits, WithScalar(b.getInt32Ty(), bits->getType()));
  Value* magnitude = b.CreateAnd(wide, Word(wide, 0x7fff));
  Value* sign = b.CreateShl(b.CreateXor(wide, magnitude), Word(wide, 16));
  Value* rebias = b.CreateSelect(b.CreateICmpULT(magnitude, Word(wide, 0x7c00)),
                                 Word(wide, kRebiasF16), Word(wide, kRebiasInfinityF16));
  Value* normal = b.CreateAdd(b.CreateShl(magnitude, Word(wide, 13)), rebias);
  llvm::Type* type = FloatLike(b, wide);
  Value* subnormal = Bits(b, b.CreateFMul(b.CreateSIToFP(magnitude, type), Number(type, 0x1p-24)));
  Value* value = b.CreateSelect(b.CreateICmpULT(magnitude, Word(wide, 0x400)), subnormal, normal);
  return b.CreateBitCast(b.CreateOr(value, sign), type);
}

llvm::Type* HalfLike(Builder& b, Value* x) { return WithScalar(b.getHalfTy(), x->getType()); }

// Marks selects between a converted f16 and the bits of a NaN.
constexpr const char* kKeepsNan = "kiln.keeps_nan";

// The conversion in what KeepNan has made; null for any other value.
llvm::FPExtInst* ConversionIn(Value* x) {
  auto* select = llvm::dyn_cast<llvm::SelectInst>(x);
  if (!select || !select->hasMetadata(kKeepsNan)) return nullptr;
  return llvm::dyn_cast<llvm::FPExtInst>(select->getFalseValue());
}

// `number`, converted from the f16 of these bits by a machine that does not keep NaNs. The bits
// that the shift leaves between the sign and the mantissa are copies of the sign, and a NaN's
// exponent is all ones.
Value* KeepNan(Builder& b, Value* number, Value* bits) {
  Value* wide = b.CreateSExt(bits, WithScalar(b.getInt32Ty(), bits->getType()));
  Value* nan = b.CreateOr(b.CreateShl(wide, Word(wide, 13)), Word(wide, kInfinity));
  Value* kept = b.CreateSelect(b.CreateFCmpUNO(number, number),
                               b.CreateBitCast(nan, number->getType()), number);
  if (auto* select = llvm::dyn_cast<llvm::SelectInst>(kept)) {
    select->setMetadata(kKeepsNan, llvm::MDNode::get(b.getContext(), {}));
  }
  return kept;
}

// `packed`, or the f16 with the sign and the upper payload of x where that is a NaN.
Value* PackNan(Builder& b, Value* packed, Value* x) {
  Value* word = Bits(b, x);
  Value* magnitude = b.CreateAnd(b.CreateLShr(word, Word(word, 13)), Word(word, 0x7fff));
  Value* sign = b.CreateAnd(b.CreateLShr(word, Word(word, 16)), Word(word, 0x8000));
  Value* nan = b.CreateTrunc(b.CreateOr(magnitude, sign), packed->getType());
  return b.CreateSelect(b.CreateFCmpUNO(x, x), nan, packed);
}

}  // namespace

Value* WithoutNanBits(Value* x) {
  llvm::FPExtInst* conversion = ConversionIn(x);
  return conversion ? conversion : x;
}

Value* UnpackHalf(Builder& b, Value* bits, ElementType type, MathOptions options) {
  if (type == ElementType::kF16) {
    if (!options.has_f16) return UnpackF16ByBits(b, bits);
    Value* number = b.CreateFPExt(b.CreateBitCast(bits, HalfLike(b, bits)), FloatLike(b, bits));
    return options.keeps_nans ? number : KeepNan(b, number, bits);
  }
  Value* wide = b.CreateZExt(bits, WithScalar(b.getInt32Ty(), bits->getType()));
  return b.CreateBitCast(b.CreateShl(wide, Word(wide, 16)), FloatLike(b, bits));
}

Value* PackHalf(Builder& b, Value* x, ElementType type, MathOptions options) {
  llvm::Type* bits = WithScalar(b.getInt16Ty(), x->getType());
  if (type == ElementType::kF16) {
    if (!options.has_f16) return PackF16ByBits(b, x);
    // Where it has just been unpacked or rounded, the f16 is there already.
    auto* widened = llvm::dyn_cast<llvm::FPExtInst>(WithoutNanBits(x));
    if (widened) return b.CreateBitCast(widened->getOperand(0), bits);
    Value* packed = b.CreateBitCast(b.CreateFPTrunc(x, HalfLike(b, x)), bits);
    return options.keeps_nans ? packed : PackNan(b, packed, x);
  }
  Value* word = Bits(b, x);
  return b.CreateTrunc(b.CreateLShr(word, Word(word, 16)), bits);
}

Value* RoundToHalf(Builder& b, Value* x, ElementType type, MathOptions options,
                   bool is_arithmetic) {
  // A GPU's own NaN has all ones.
  if (type == ElementType::kBF16) {
    return RoundToBf16(b, x, options, is_arithmetic && options.keeps_nans);
  }
  if (!options.has_f16) return RoundToF16ByBits(b, x);
  return b.CreateFPExt(b.CreateFPTrunc(x, HalfLike(b, x)), x->getType());
}

// An f64 as an f32 that is on the same side of every number of up to 22 bits, and of every halfway
// point between two: truncated, with the last bit set where anything was cut off ("round to odd").
Value* NarrowToOdd(Builder& b, Value* x) {
  llvm::Type* narrow = WithScalar(b.getFloatTy(), x->getType());
  Value* nearest = b.CreateFPTrunc(x, narrow);
  Value* back = b.CreateFPExt(nearest, x->getType());
  Value* bits = Bits(b, nearest);
  Value* inexact = b.CreateFCmpONE(back, x);
  Value* away = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x));
  bits = b.CreateSub(bits, b.CreateZExt(away, bits->getType()));
  bits = b.CreateOr(bits, b.CreateZExt(inexact, bits->getType()));
  return b.CreateBitCast(bits, narrow);
}

// An integer of 32 or 64 bits as f32 or f64, rounded to odd (a sticky bit for the lost ones), so
// that rounding again to far fewer bits is correct.
Value* IntToSticky(Builder& b, Value* x, bool is_signed) {
  unsigned bits = x->getType()->getScalarSizeInBits();
  unsigned digits = bits == 64 ? 53 : 24, drop = bits - digits;
  llvm::Type* type = WithScalar(bits == 64 ? b.getDoubleTy() : b.getFloatTy(), x->getType());
  auto number = [&](uint64_t n) { return llvm::ConstantInt::get(x->getType(), n); };
  Value* rest = b.CreateAnd(x, number((uint64_t{1} << drop) - 1));
  Value* sticky = b.CreateShl(b.CreateZExt(b.CreateIsNotNull(rest), x->getType()), number(drop));
  Value* folded = b.CreateOr(b.CreateSub(x, rest), sticky);
  Value* fits = is_signed ? b.CreateICmpULT(b.CreateAdd(x, number(uint64_t{1} << digits)),
                                            number(uint64_t{2} << digits))
                          : b.CreateICmpULT(x, number(uint64_t{1} << digits));
  Value* safe = b.CreateSelect(fits, x, folded);
  return is_signed ? b.CreateSIToFP(safe, type) : b.CreateUIToFP(safe, type);
}

}  // namespace kiln::codegen::elemental

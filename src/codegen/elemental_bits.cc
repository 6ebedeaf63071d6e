// The elementwise ops that work on a float's bits.
#include "codegen/elemental_internal.h"

namespace kiln::codegen::elemental {

using llvm::Value;

namespace {

unsigned MantissaOf(ElementType type) {
  switch (type) {
    case ElementType::kF64:
      return 52;
    case ElementType::kF16:
      return 10;
    case ElementType::kBF16:
      return 7;
    default:
      return 23;
  }
}

}  // namespace

// See interp/scalar.h, which says the same of one number.
Value* EmitReducePrecision(Builder& b, Value* x, ElementType type, int64_t exponent_bits,
                           int64_t mantissa_bits, MathOptions options) {
  Value* memory = ToMemory(b, x, type, options);
  llvm::Type* t = IntOf(memory->getType());
  const unsigned width = t->getScalarSizeInBits();
  const unsigned mantissa = MantissaOf(type);
  const unsigned exponent = width - 1 - mantissa;
  if (exponent_bits >= exponent && mantissa_bits >= mantissa) {
    return FromMemory(b, memory, type, options);
  }
  auto number = [&](uint64_t bits) { return llvm::ConstantInt::get(t, bits); };
  auto ones = [](unsigned count) { return (uint64_t{1} << count) - 1; };
  Value* whole = b.CreateBitCast(memory, t);
  Value* sign = b.CreateAnd(whole, number(uint64_t{1} << (width - 1)));
  Value* bits = b.CreateAnd(whole, number(ones(width - 1)));
  llvm::Constant* infinity = number(ones(exponent) << mantissa);
  Value* is_nan = b.CreateICmpUGT(bits, infinity);
  if (mantissa_bits < mantissa) {
    const unsigned cut = mantissa - static_cast<unsigned>(mantissa_bits);
    Value* odd = b.CreateAnd(b.CreateLShr(bits, number(cut)), number(1));
    bits = b.CreateAdd(bits, b.CreateAdd(odd, number(ones(cut - 1))));
    bits = b.CreateAnd(bits, number(ones(width - 1) & ~ones(cut)));
  }
  if (exponent_bits < exponent) {
    const uint64_t middle = ones(exponent - 1);
    const uint64_t reach = ones(static_cast<unsigned>(exponent_bits) - 1);
    // The highest number whose exponent is too small, and the lowest one whose is too large.
    Value* below = b.CreateICmpULT(bits, number((middle - reach + 1) << mantissa));
    Value* above = b.CreateICmpUGE(bits, number((middle + reach + 1) << mantissa));
    bits = b.CreateSelect(above, infinity, b.CreateSelect(below, number(0), bits));
  }
  Value* result = b.CreateOr(sign, bits);
  Value* of_nan = mantissa_bits > 0 ? whole : b.CreateOr(sign, infinity);
  result = b.CreateSelect(is_nan, of_nan, result);
  return FromMemory(b, b.CreateBitCast(result, memory->getType()), type, options);
}

}  // namespace kiln::codegen::elemental

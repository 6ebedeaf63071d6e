#include "passes/expand/small_floats.h"

#include <cmath>

namespace kiln::passes::expand {
namespace {

using ir::Instruction;

// The format of computations, and the integers for its bits.
struct Wide {
  ElementType type, bits;
  FloatFormat format;
};
constexpr Wide kSingle{ElementType::kF32, ElementType::kU32, kFloatBits};
constexpr Wide kDouble{ElementType::kF64, ElementType::kU64, kDoubleBits};

// Arithmetic on words of one type and shape.
class Words {
 public:
  Words(Builder& b, const Shape& dimensions, const Wide& wide)
      : b_(b), shape_(wide.bits, dimensions.dimensions()), wide_(wide) {}

  Instruction* Word(uint64_t value) {
    return b_.Splat(shape_, wide_.bits == ElementType::kU32
                                ? Literal::Scalar(wide_.bits, static_cast<uint32_t>(value))
                                : Literal::Scalar(wide_.bits, value));
  }
  Instruction* And(Instruction* x, uint64_t mask) { return b_.And(x, Word(mask)); }
  Instruction* Left(Instruction* x, int by) {
    return by == 0 ? x : b_.Binary(Opcode::kShiftLeft, x, Word(static_cast<uint64_t>(by)));
  }
  Instruction* Right(Instruction* x, int by) {
    return by == 0 ? x : b_.Binary(Opcode::kShiftRightLogical, x, Word(static_cast<uint64_t>(by)));
  }
  Instruction* Plus(Instruction* x, uint64_t y) { return b_.Plus(x, Word(y)); }
  Instruction* Is(Direction direction, Instruction* x, uint64_t y) {
    return b_.Compare(direction, x, Word(y));
  }
  Instruction* AsFloat(Instruction* bits) { return b_.Bits(bits, wide_.type); }

 private:
  Builder& b_;
  Shape shape_;
  Wide wide_;
};

}  // namespace

Instruction* DecodeFloat(Builder& b, const FloatFormat& format, Instruction* bits) {
  const FloatFormat& to = kSingle.format;
  Words w(b, bits->shape(), kSingle);
  Instruction* word = b.Convert(bits, kSingle.bits);
  Instruction* magnitude = w.And(word, format.magnitude_mask());
  const int widen = to.mantissa - format.mantissa;
  const uint64_t rebias = static_cast<uint64_t>(to.bias - format.bias) << to.mantissa;
  Instruction* value = w.Plus(w.Left(magnitude, widen), rebias);
  if (!format.has_sign) {
    // The least number is a subnormal one here.
    value = b.Select(w.Is(Direction::kEq, magnitude, 0), w.Word(to.hidden() >> 1), value);
  } else {
    // Zero and subnormals: so many of the least number.
    Instruction* count = b.Convert(magnitude, kSingle.type);
    Instruction* small =
        b.Times(count, b.Number(count, std::ldexp(1.0, 1 - format.bias - format.mantissa)));
    value = b.Select(w.Is(Direction::kLt, magnitude, format.hidden()), b.Bits(small, kSingle.bits),
                     value);
  }
  const uint64_t quiet = to.infinity() | to.hidden() >> 1;
  switch (format.specials) {
    case Specials::kIeee:
      // Infinities, and NaNs with their payloads.
      value = b.Select(
          w.Is(Direction::kGe, magnitude, format.infinity()),
          b.Or(w.Left(w.And(magnitude, format.hidden() - 1), widen), w.Word(to.infinity())), value);
      break;
    case Specials::kNan:
      value =
          b.Select(w.Is(Direction::kEq, magnitude, format.magnitude_mask()), w.Word(quiet), value);
      break;
    case Specials::kNanAsNegativeZero:
      value = b.Select(w.Is(Direction::kEq, word, format.sign_bit()), w.Word(quiet), value);
      break;
    case Specials::kNone:
      break;
  }
  if (format.has_sign) {
    Instruction* sign = w.And(word, format.sign_bit());
    value = b.Or(value, w.Left(sign, 32 - format.bits()));
  }
  return w.AsFloat(value);
}

Instruction* EncodeFloat(Builder& b, const FloatFormat& format, Instruction* x) {
  const Wide& wide = x->shape().type() == ElementType::kF32 ? kSingle : kDouble;
  const FloatFormat& from = wide.format;
  Words w(b, x->shape(), wide);
  Instruction* bits = b.Bits(x, wide.bits);
  Instruction* magnitude = w.And(bits, from.magnitude_mask());
  const int drop = from.mantissa - format.mantissa;
  const uint64_t half = uint64_t{1} << (drop - 1);
  const uint64_t rebias = static_cast<uint64_t>(from.bias - format.bias) << format.mantissa;
  Instruction* code = nullptr;
  if (!format.has_sign) {
    // Halves go up, as the one bit that is kept is odd. The least number is 2^-bias.
    code = b.Minus(w.Right(w.Plus(magnitude, half), drop), w.Word(rebias));
    const uint64_t least = static_cast<uint64_t>(from.bias - format.bias + 1) << from.mantissa;
    // Of f32 with its bias, numbers below 2^(1 - bias) are subnormal: from 1.5 times the least on
    // they go up.
    Instruction* up =
        w.Is(Direction::kGe, magnitude,
             from.bias == format.bias ? 3 * (from.hidden() >> 2) : least - (from.hidden() >> 1));
    code = b.Select(w.Is(Direction::kLt, magnitude, least), b.Convert(up, wide.bits), code);
  } else {
    // Just under half of the last kept bit, or half if that bit is set.
    Instruction* odd = w.And(w.Right(magnitude, drop), 1);
    code = b.Minus(w.Right(b.Plus(w.Plus(magnitude, half - 1), odd), drop), w.Word(rebias));
    // Subnormal results are added to a number whose last bit is the least number.
    const uint64_t normal = static_cast<uint64_t>(from.bias + 1 - format.bias) << from.mantissa;
    const uint64_t aligned =
        static_cast<uint64_t>(from.bias + from.mantissa + 1 - format.bias - format.mantissa)
        << from.mantissa;
    Instruction* sum = b.Plus(w.AsFloat(magnitude), w.AsFloat(w.Word(aligned)));
    Instruction* small = b.Minus(b.Bits(sum, wide.bits), w.Word(aligned));
    code = b.Select(w.Is(Direction::kLt, magnitude, normal), small, code);
  }
  Instruction* overflows = w.Is(Direction::kGt, code, format.largest());
  Instruction* nan = w.Is(Direction::kGt, magnitude, from.infinity());
  Instruction* sign = w.Word(0);
  if (format.has_sign) {
    sign = w.Left(w.Right(bits, from.bits() - 1), format.bits() - 1);
  }
  switch (format.specials) {
    case Specials::kIeee: {
      code = b.Select(overflows, w.Word(format.infinity()), code);
      Instruction* payload = w.Right(w.And(magnitude, from.hidden() - 1), drop);
      code = b.Select(nan, b.Or(payload, w.Word(format.infinity() | format.hidden() >> 1)), code);
      code = b.Or(code, sign);
      break;
    }
    case Specials::kNan:
      code = b.Select(b.Or(overflows, nan), w.Word(format.magnitude_mask()), code);
      if (format.has_sign) {
        code = b.Or(code, sign);
      } else {
        // Nothing but positive numbers has a value.
        Instruction* positive = b.Compare(Direction::kGt, x, b.Number(x, 0));
        code = b.Select(positive, code, w.Word(format.magnitude_mask()));
      }
      break;
    case Specials::kNanAsNegativeZero:
      code = b.Select(w.Is(Direction::kEq, code, 0), code, b.Or(code, sign));
      code = b.Select(b.Or(overflows, nan), w.Word(format.sign_bit()), code);
      break;
    case Specials::kNone:
      code = b.Or(b.Select(overflows, w.Word(format.largest()), code), sign);
      code = b.Select(nan, w.Word(format.sign_bit()), code);
      break;
  }
  return b.Convert(code, ElementType::kU8);
}

}  // namespace kiln::passes::expand

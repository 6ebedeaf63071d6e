// The encodings of floats, as data: IEEE 754's formats and the later small ones. Conversions round
// once, to nearest even.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace kiln {

// The special values of a format.
enum class Specials : uint8_t {
  kIeee,               // infinities and NaNs, at the largest exponent
  kNan,                // "FN": a NaN of all ones (one for each sign), no infinities
  kNanAsNegativeZero,  // "FNUZ": one NaN, whose bits would be those of -0; no -0, no infinities
  kNone,               // "FN" of less than a byte: numbers alone
};

// Bits from the highest: a sign (if there is one), an exponent, a mantissa. Exponents count from
// -bias; with the least of them numbers are zero or subnormal. A format without a sign has no zero
// either (F8E8M0FNU): its least exponent is one like the others.
struct FloatFormat {
  int exponent, mantissa, bias;
  Specials specials = Specials::kIeee;
  bool has_sign = true;

  constexpr int bits() const { return (has_sign ? 1 : 0) + exponent + mantissa; }
  // The bits of a magnitude, of the sign, of the largest finite magnitude, and the least normal
  // magnitude, in which the exponent is 1.
  constexpr uint64_t magnitude_mask() const { return (uint64_t{1} << (exponent + mantissa)) - 1; }
  constexpr uint64_t sign_bit() const { return has_sign ? magnitude_mask() + 1 : 0; }
  constexpr uint64_t hidden() const { return uint64_t{1} << mantissa; }
  constexpr uint64_t infinity() const { return ((uint64_t{1} << exponent) - 1) << mantissa; }
  constexpr uint64_t largest() const {
    switch (specials) {
      case Specials::kIeee:
        return infinity() - 1;
      case Specials::kNan:
        return magnitude_mask() - 1;
      case Specials::kNanAsNegativeZero:
      case Specials::kNone:
        break;
    }
    return magnitude_mask();
  }
  constexpr bool operator==(const FloatFormat&) const = default;
};

inline constexpr FloatFormat kFloatBits{8, 23, 127};
inline constexpr FloatFormat kDoubleBits{11, 52, 1023};

// The magnitude m * 2^e, m > 0, rounded, with an unbounded exponent range above.
constexpr uint64_t RoundMagnitude(const FloatFormat& format, uint64_t m, int e) {
  // m gets its highest bit, which has the exponent e + 63.
  const int shift = std::countl_zero(m);
  m <<= shift;
  const int exponent = e - shift + 63 + format.bias;
  int drop = 63 - format.mantissa;
  if (!format.has_sign && exponent < 0) return 0;             // to the least number there is
  if (format.has_sign && exponent < 1) drop += 1 - exponent;  // a subnormal has fewer bits
  if (drop > 64) return 0;
  uint64_t kept = drop == 64 ? 0 : m >> drop;
  const uint64_t rest = drop == 64 ? m : m & ((uint64_t{1} << drop) - 1);
  const uint64_t half = uint64_t{1} << (drop - 1);
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  // The hidden bit, and a carry out of the mantissa, count up the exponent.
  const int64_t below = format.has_sign ? std::max(exponent - 1, 0) : exponent - 1;
  return static_cast<uint64_t>(below * static_cast<int64_t>(format.hidden()) +
                               static_cast<int64_t>(kept));
}

// The bits for overflow: an infinity, in formats without infinities a NaN, and in formats with
// neither the largest number, as in XLA and ml_dtypes.
constexpr uint64_t EncodeOverflow(const FloatFormat& format, bool negative) {
  const uint64_t sign = negative ? format.sign_bit() : 0;
  switch (format.specials) {
    case Specials::kIeee:
      return sign | format.infinity();
    case Specials::kNan:
      return sign | format.magnitude_mask();
    case Specials::kNanAsNegativeZero:
      return format.sign_bit();
    case Specials::kNone:
      break;
  }
  return sign | format.largest();
}

// The bits of a quiet NaN with a payload of 52 bits, truncated to the format's mantissa. Without a
// NaN in the format it becomes -0, as in XLA.
constexpr uint64_t EncodeNan(const FloatFormat& format, bool negative, uint64_t payload) {
  const uint64_t sign = negative ? format.sign_bit() : 0;
  switch (format.specials) {
    case Specials::kIeee:
      return sign | format.infinity() | payload >> (52 - format.mantissa) | format.hidden() >> 1;
    case Specials::kNan:
      return sign | format.magnitude_mask();
    case Specials::kNanAsNegativeZero:
    case Specials::kNone:
      break;
  }
  return format.sign_bit();
}

// The bits of +-m * 2^e. In formats without a sign, numbers that are not positive become NaN.
constexpr uint64_t EncodeScaled(const FloatFormat& format, bool negative, uint64_t m, int e) {
  if (!format.has_sign && (negative || m == 0)) return EncodeNan(format, false, 0);
  const uint64_t magnitude = m == 0 ? 0 : RoundMagnitude(format, m, e);
  if (magnitude > format.largest()) return EncodeOverflow(format, negative);
  if (magnitude == 0 && format.specials == Specials::kNanAsNegativeZero) return 0;
  return (negative ? format.sign_bit() : 0) | magnitude;
}

// A finite double as m * 2^e.
struct ScaledDouble {
  bool negative;
  uint64_t m;
  int e;
};
constexpr ScaledDouble ScaledOf(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  const uint64_t mantissa = bits & ((uint64_t{1} << 52) - 1);
  if (exponent == 0) return {bits >> 63 != 0, mantissa, -1074};
  return {bits >> 63 != 0, mantissa | uint64_t{1} << 52, exponent - 1075};
}

// The bits of the nearest number of the format, in one step.
constexpr uint64_t EncodeFloat(const FloatFormat& format, double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  if ((bits >> 52 & 0x7ff) == 0x7ff) {
    const bool negative = bits >> 63 != 0;
    const uint64_t payload = bits & ((uint64_t{1} << 52) - 1);
    if (payload != 0) return EncodeNan(format, negative, payload);
    if (negative && !format.has_sign) return EncodeNan(format, false, 0);
    return EncodeOverflow(format, negative);
  }
  const ScaledDouble scaled = ScaledOf(value);
  return EncodeScaled(format, scaled.negative, scaled.m, scaled.e);
}

template <std::integral T>
constexpr uint64_t EncodeInteger(const FloatFormat& format, T value) {
  bool negative = false;
  if constexpr (std::is_signed_v<T>) negative = value < 0;
  const auto magnitude = static_cast<uint64_t>(value);
  return EncodeScaled(format, negative, negative ? uint64_t{0} - magnitude : magnitude, 0);
}

// Whether a number is in range: false if it would become an infinity, a NaN or the largest number.
constexpr bool HoldsRounded(const FloatFormat& format, double value) {
  if (value != value || value - value != 0) return false;
  const ScaledDouble scaled = ScaledOf(value);
  if (!format.has_sign && (scaled.negative || scaled.m == 0)) return false;
  return scaled.m == 0 || RoundMagnitude(format, scaled.m, scaled.e) <= format.largest();
}

// Whether the bits are a NaN. Bits above the format's are ignored, here and below.
constexpr bool IsNanBits(const FloatFormat& format, uint64_t bits) {
  const uint64_t magnitude = bits & format.magnitude_mask();
  switch (format.specials) {
    case Specials::kIeee:
      return magnitude > format.infinity();
    case Specials::kNan:
      return magnitude == format.magnitude_mask();
    case Specials::kNanAsNegativeZero:
      return magnitude == 0 && (bits & format.sign_bit()) != 0;
    case Specials::kNone:
      break;
  }
  return false;
}

// The number as a float or a double. A NaN keeps its sign bit and payload. Subnormals avoid
// arithmetic, which may flush them.
template <std::floating_point To>
constexpr To DecodeFloat(const FloatFormat& format, uint64_t bits) {
  constexpr FloatFormat kTo = sizeof(To) == 4 ? kFloatBits : kDoubleBits;
  using Bits = std::conditional_t<sizeof(To) == 4, uint32_t, uint64_t>;
  const int widen = kTo.mantissa - format.mantissa;
  const uint64_t sign = (bits & format.sign_bit()) != 0 ? kTo.sign_bit() : 0;
  const uint64_t magnitude = bits & format.magnitude_mask();
  auto value = [&](uint64_t m) { return std::bit_cast<To>(static_cast<Bits>(sign | m)); };
  if (IsNanBits(format, bits)) {
    if (format.specials != Specials::kIeee) return value(kTo.infinity() | kTo.hidden() >> 1);
    return value(kTo.infinity() | (magnitude & (format.hidden() - 1)) << widen);
  }
  if (format.specials == Specials::kIeee && magnitude == format.infinity()) {
    return value(kTo.infinity());
  }
  const int rebias = kTo.bias - format.bias;
  if (!format.has_sign && rebias == 0 && magnitude == 0) return value(kTo.hidden() >> 1);
  // Subnormals of formats with a smaller exponent are normal numbers here.
  if (format.has_sign && rebias > 0 && magnitude < format.hidden()) {
    const uint64_t unit = static_cast<uint64_t>(rebias + 1 - format.mantissa) << kTo.mantissa;
    const To positive = static_cast<To>(magnitude) * std::bit_cast<To>(static_cast<Bits>(unit));
    return value(std::bit_cast<Bits>(positive));
  }
  return value((magnitude << widen) + (static_cast<uint64_t>(rebias) << kTo.mantissa));
}

}  // namespace kiln

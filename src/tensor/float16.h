// The floats of 16 bits as C++ types: what arrays of them hold. They are for keeping; arithmetic is
// done in float or double, and conversions to these types round once, to nearest even.
#pragma once

#include <bit>
#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace kiln {

// A sign bit, kExponent bits of exponent and kMantissa bits of mantissa, encoded as by IEEE 754:
// with subnormals, infinities and NaNs.
template <int kExponent, int kMantissa>
class SmallFloat {
 public:
  static_assert(1 + kExponent + kMantissa == 16);
  static constexpr int kMantissaBits = kMantissa;

  constexpr SmallFloat() = default;
  // What is too large becomes an infinity; a NaN stays one, with the upper bits of its payload, and
  // is quiet.
  constexpr explicit SmallFloat(double value) : bits_(FromDouble(value)) {}
  constexpr explicit SmallFloat(float value) : SmallFloat(static_cast<double>(value)) {}
  template <std::integral T>
  constexpr explicit SmallFloat(T value) : bits_(FromInt(value)) {}
  template <int e, int m>
  constexpr explicit SmallFloat(SmallFloat<e, m> value) : SmallFloat(static_cast<double>(value)) {}
  static constexpr SmallFloat FromBits(uint16_t bits) {
    SmallFloat f;
    f.bits_ = bits;
    return f;
  }
  constexpr uint16_t bits() const { return bits_; }

  // Exact. A NaN keeps its payload.
  constexpr explicit operator float() const {
    uint32_t sign = static_cast<uint32_t>(bits_ & kSign) << 16;
    uint32_t magnitude = bits_ & ~kSign;
    // Zeros and subnormals of fewer bits of exponent are normal numbers here.
    if (kExponent < 8 && magnitude < kHidden) {
      float value = static_cast<float>(magnitude) * kSmallest;
      return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
    }
    uint32_t rebias = magnitude >= kInfinity ? 0xff - kMaxExponent : 127 - kBias;
    return std::bit_cast<float>(sign | ((magnitude << (23 - kMantissa)) + (rebias << 23)));
  }
  constexpr explicit operator double() const {
    // Not by way of float: where that flushes subnormals, these must not.
    uint64_t sign = static_cast<uint64_t>(bits_ & kSign) << 48;
    uint64_t magnitude = bits_ & ~kSign;
    if (magnitude < kHidden) {
      double value = static_cast<double>(magnitude) * kSmallestDouble;
      return std::bit_cast<double>(std::bit_cast<uint64_t>(value) | sign);
    }
    uint64_t rebias = magnitude >= kInfinity ? 0x7ff - kMaxExponent : 1023 - kBias;
    return std::bit_cast<double>(sign | ((magnitude << (52 - kMantissa)) + (rebias << 52)));
  }
  // Truncated, as C++ converts floats; the value must fit.
  template <std::integral T>
  constexpr explicit operator T() const {
    return static_cast<T>(static_cast<float>(*this));
  }

  constexpr SmallFloat operator-() const { return FromBits(static_cast<uint16_t>(bits_ ^ kSign)); }
  // As floats compare: a NaN with nothing, and the zeros are equal.
  friend constexpr bool operator==(SmallFloat a, SmallFloat b) {
    return static_cast<double>(a) == static_cast<double>(b);
  }
  friend constexpr std::partial_ordering operator<=>(SmallFloat a, SmallFloat b) {
    return static_cast<double>(a) <=> static_cast<double>(b);
  }

 private:
  static constexpr uint16_t kSign = 0x8000;
  static constexpr uint32_t kHidden = uint32_t{1} << kMantissa;  // the least normal magnitude
  static constexpr uint32_t kMaxExponent = (uint32_t{1} << kExponent) - 1;
  static constexpr uint32_t kInfinity = kMaxExponent << kMantissa;
  static constexpr uint32_t kBias = kMaxExponent >> 1;
  static constexpr double kSmallestDouble =
      std::bit_cast<double>(static_cast<uint64_t>(1023 - kBias + 1 - kMantissa) << 52);
  static constexpr float kSmallest = static_cast<float>(kSmallestDouble);

  // The bits of +-m * 2^e, rounded.
  static constexpr uint16_t Round(bool negative, uint64_t m, int e) {
    const uint16_t sign = negative ? kSign : 0;
    if (m == 0) return sign;
    // m gets its highest bit, which has the exponent e + 63.
    const int shift = std::countl_zero(m);
    m <<= shift;
    const int biased = e - shift + 63 + static_cast<int>(kBias);
    int drop = 63 - kMantissa;
    if (biased < 1) drop += 1 - biased;  // a subnormal has fewer bits
    if (drop > 64) return sign;
    if (biased >= static_cast<int>(kMaxExponent)) return static_cast<uint16_t>(sign | kInfinity);
    uint64_t kept = drop == 64 ? 0 : m >> drop;
    const uint64_t rest = drop == 64 ? m : m & ((uint64_t{1} << drop) - 1);
    const uint64_t half = uint64_t{1} << (drop - 1);
    if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
    // The hidden bit, and a carry out of the mantissa, count up the exponent.
    const uint64_t exponent = biased < 1 ? 0 : static_cast<uint64_t>(biased - 1);
    return static_cast<uint16_t>(sign | ((exponent << kMantissa) + kept));
  }

  static constexpr uint16_t FromDouble(double value) {
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    const bool negative = bits >> 63 != 0;
    const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
    const uint64_t mantissa = bits & ((uint64_t{1} << 52) - 1);
    if (exponent == 0x7ff) {
      uint32_t special = kInfinity | static_cast<uint32_t>(mantissa >> (52 - kMantissa));
      if (mantissa != 0) special |= kHidden >> 1;
      return static_cast<uint16_t>((negative ? kSign : 0) | special);
    }
    if (exponent == 0) return Round(negative, mantissa, -1074);
    return Round(negative, mantissa | uint64_t{1} << 52, exponent - 1075);
  }

  template <std::integral T>
  static constexpr uint16_t FromInt(T value) {
    bool negative = false;
    if constexpr (std::is_signed_v<T>) negative = value < 0;
    const auto magnitude = static_cast<uint64_t>(value);
    return Round(negative, negative ? uint64_t{0} - magnitude : magnitude, 0);
  }

  uint16_t bits_ = 0;
};

using Float16 = SmallFloat<5, 10>;  // IEEE 754's binary16
using BFloat16 = SmallFloat<8, 7>;  // the upper half of a float

template <typename T>
concept HalfType = std::same_as<T, Float16> || std::same_as<T, BFloat16>;
// The C++ types of float element types.
template <typename T>
concept FloatType = std::floating_point<T> || HalfType<T>;

// What values of a type are computed in, one op at a time.
template <typename T>
using ComputeType = std::conditional_t<HalfType<T>, float, T>;

}  // namespace kiln

template <int kExponent, int kMantissa>
class std::numeric_limits<kiln::SmallFloat<kExponent, kMantissa>> {
  using T = kiln::SmallFloat<kExponent, kMantissa>;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr uint16_t kInfinity = ((1 << kExponent) - 1) << kMantissa;

 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool is_iec559 = true;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = true;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr int radix = 2;
  static constexpr int digits = kMantissa + 1;
  static constexpr int digits10 = kMantissa * 30103 / 100000;
  static constexpr int max_digits10 = (kMantissa + 1) * 30103 / 100000 + 2;
  static constexpr int min_exponent = 2 - kBias;
  static constexpr int max_exponent = kBias + 1;

  static constexpr T min() { return T::FromBits(1 << kMantissa); }
  static constexpr T max() { return T::FromBits(kInfinity - 1); }
  static constexpr T lowest() { return -max(); }
  static constexpr T epsilon() { return T::FromBits((kBias - kMantissa) << kMantissa); }
  static constexpr T round_error() { return T(0.5); }
  static constexpr T denorm_min() { return T::FromBits(1); }
  static constexpr T infinity() { return T::FromBits(kInfinity); }
  static constexpr T quiet_NaN() { return T::FromBits(kInfinity | 1 << (kMantissa - 1)); }
  static constexpr T signaling_NaN() { return T::FromBits(kInfinity | 1); }
};

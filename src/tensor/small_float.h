// Floats of 16 bits and fewer as C++ types, the elements of arrays, in one or two bytes. They are
// storage types: arithmetic is done in float or double, and conversions to these types round once,
// to nearest even.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tensor/float_format.h"

namespace kiln {

template <FloatFormat kFormat>
class SmallFloat {
 public:
  using Bits = std::conditional_t<(kFormat.bits() > 8), uint16_t, uint8_t>;
  static constexpr FloatFormat format = kFormat;

  constexpr SmallFloat() = default;
  // Overflow becomes an infinity, or the format's value in EncodeOverflow; a NaN stays a quiet one,
  // with the upper bits of its payload.
  constexpr explicit SmallFloat(double value)
      : bits_(static_cast<Bits>(EncodeFloat(kFormat, value))) {}
  constexpr explicit SmallFloat(float value) : SmallFloat(static_cast<double>(value)) {}
  template <std::integral T>
  constexpr explicit SmallFloat(T value)
      : bits_(static_cast<Bits>(EncodeInteger(kFormat, value))) {}
  template <FloatFormat kOther>
  constexpr explicit SmallFloat(SmallFloat<kOther> value)
      : SmallFloat(static_cast<double>(value)) {}
  static constexpr SmallFloat FromBits(Bits bits) {
    SmallFloat f;
    f.bits_ = bits;
    return f;
  }
  constexpr Bits bits() const { return bits_; }

  // Exact. A NaN keeps its payload.
  constexpr explicit operator float() const { return DecodeFloat<float>(kFormat, bits_); }
  constexpr explicit operator double() const { return DecodeFloat<double>(kFormat, bits_); }
  // Truncated, as C++ converts floats; the value must fit.
  template <std::integral T>
  constexpr explicit operator T() const {
    return static_cast<T>(static_cast<float>(*this));
  }

  // The opposite sign, for NaNs too, if the format has signs.
  constexpr SmallFloat operator-() const {
    if constexpr (!kFormat.has_sign || kFormat.specials == Specials::kNanAsNegativeZero) {
      return SmallFloat(-static_cast<double>(*this));
    } else {
      return FromBits(static_cast<Bits>(bits_ ^ kFormat.sign_bit()));
    }
  }
  // Comparison of floats: NaNs equal nothing, and the zeros are equal.
  friend constexpr bool operator==(SmallFloat a, SmallFloat b) {
    return static_cast<double>(a) == static_cast<double>(b);
  }
  friend constexpr std::partial_ordering operator<=>(SmallFloat a, SmallFloat b) {
    return static_cast<double>(a) <=> static_cast<double>(b);
  }

 private:
  Bits bits_ = 0;
};

using Float16 = SmallFloat<FloatFormat{5, 10, 15}>;   // IEEE 754's binary16
using BFloat16 = SmallFloat<FloatFormat{8, 7, 127}>;  // the upper half of a float
// The others by the names of their element types.
using F8E5M2 = SmallFloat<FloatFormat{5, 2, 15}>;
using F8E4M3 = SmallFloat<FloatFormat{4, 3, 7}>;
using F8E3M4 = SmallFloat<FloatFormat{3, 4, 3}>;
using F8E4M3FN = SmallFloat<FloatFormat{4, 3, 7, Specials::kNan}>;
using F8E4M3B11FNUZ = SmallFloat<FloatFormat{4, 3, 11, Specials::kNanAsNegativeZero}>;
using F8E5M2FNUZ = SmallFloat<FloatFormat{5, 2, 16, Specials::kNanAsNegativeZero}>;
using F8E4M3FNUZ = SmallFloat<FloatFormat{4, 3, 8, Specials::kNanAsNegativeZero}>;
using F8E8M0FNU = SmallFloat<FloatFormat{8, 0, 127, Specials::kNan, /*has_sign=*/false}>;
using F6E2M3FN = SmallFloat<FloatFormat{2, 3, 1, Specials::kNone}>;
using F6E3M2FN = SmallFloat<FloatFormat{3, 2, 3, Specials::kNone}>;
using F4E2M1FN = SmallFloat<FloatFormat{2, 1, 1, Specials::kNone}>;

template <typename T>
concept SmallFloatType = requires {
  T::format;
}
&&std::same_as<T, SmallFloat<T::format>>;
template <typename T>
concept HalfType = std::same_as<T, Float16> || std::same_as<T, BFloat16>;
// The C++ types of float element types.
template <typename T>
concept FloatType = std::floating_point<T> || SmallFloatType<T>;

template <FloatType T>
constexpr FloatFormat FormatOf() {
  if constexpr (SmallFloatType<T>) return T::format;
  return sizeof(T) == 4 ? kFloatBits : kDoubleBits;
}

// The type of computation of a type, one op at a time.
template <typename T>
using ComputeType = std::conditional_t<SmallFloatType<T>, float, T>;

}  // namespace kiln

template <kiln::FloatFormat kFormat>
class std::numeric_limits<kiln::SmallFloat<kFormat>> {
  using T = kiln::SmallFloat<kFormat>;
  using Bits = typename T::Bits;
  static constexpr T Of(uint64_t bits) { return T::FromBits(static_cast<Bits>(bits)); }
  static constexpr bool kIeee = kFormat.specials == kiln::Specials::kIeee;

 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = kFormat.has_sign;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool is_iec559 = kIeee;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr bool has_infinity = kIeee;
  static constexpr bool has_quiet_NaN = kFormat.specials != kiln::Specials::kNone;
  static constexpr bool has_signaling_NaN = kIeee;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr int radix = 2;
  static constexpr int digits = kFormat.mantissa + 1;
  static constexpr int digits10 = kFormat.mantissa * 30103 / 100000;
  static constexpr int max_digits10 = (kFormat.mantissa + 1) * 30103 / 100000 + 2;
  static constexpr int min_exponent = (is_signed ? 2 : 1) - kFormat.bias;
  static constexpr int max_exponent =
      static_cast<int>(kFormat.largest() >> kFormat.mantissa) - kFormat.bias + 1;

  static constexpr T min() { return Of(is_signed ? kFormat.hidden() : 0); }
  static constexpr T max() { return Of(kFormat.largest()); }
  static constexpr T lowest() { return is_signed ? -max() : min(); }
  static constexpr T epsilon() { return T(1.0 / (1 << kFormat.mantissa)); }
  static constexpr T round_error() { return T(0.5); }
  static constexpr T denorm_min() { return Of(is_signed ? 1 : 0); }
  // The converted value for formats without one.
  static constexpr T infinity() { return Of(kiln::EncodeOverflow(kFormat, false)); }
  static constexpr T quiet_NaN() { return Of(kiln::EncodeNan(kFormat, false, 0)); }
  static constexpr T signaling_NaN() { return kIeee ? Of(kFormat.infinity() | 1) : quiet_NaN(); }
};

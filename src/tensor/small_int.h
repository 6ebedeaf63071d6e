// Integers of less than a byte as C++ types, the elements of arrays, one per byte. They are storage
// types: arithmetic is done in int8_t or uint8_t, and conversions to these types wrap.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace kiln {

// The byte is the sign- or zero-extended value; in other bytes only the lower bits count.
template <int kBits, bool kSigned>
class SmallInt {
 public:
  static_assert(kBits < 8);
  // The type of computation, one op at a time.
  using Byte = std::conditional_t<kSigned, int8_t, uint8_t>;
  static constexpr int bits = kBits;

  constexpr SmallInt() = default;
  template <std::integral T>
  constexpr explicit SmallInt(T value) : value_(Extended(static_cast<uint8_t>(value))) {}
  // Truncated, as C++ converts floats; the value must fit into an int.
  template <std::floating_point T>
  constexpr explicit SmallInt(T value) : SmallInt(static_cast<int>(value)) {}

  constexpr Byte value() const { return Extended(static_cast<uint8_t>(value_)); }
  template <typename T>
  requires std::integral<T> || std::floating_point<T>
  constexpr explicit operator T() const { return static_cast<T>(value()); }

  friend constexpr bool operator==(SmallInt a, SmallInt b) { return a.value() == b.value(); }
  friend constexpr std::strong_ordering operator<=>(SmallInt a, SmallInt b) {
    return a.value() <=> b.value();
  }

 private:
  static constexpr Byte Extended(uint8_t byte) {
    const auto high = static_cast<Byte>(byte << (8 - kBits));
    return static_cast<Byte>(high >> (8 - kBits));
  }

  Byte value_ = 0;
};

using S4 = SmallInt<4, true>;
using U4 = SmallInt<4, false>;
using S2 = SmallInt<2, true>;
using U2 = SmallInt<2, false>;

template <typename T>
concept SmallIntType =
    std::same_as<T, S4> || std::same_as<T, U4> || std::same_as<T, S2> || std::same_as<T, U2>;
// The C++ types of integer element types.
template <typename T>
concept IntType = (std::integral<T> && !std::same_as<T, bool>) || SmallIntType<T>;

}  // namespace kiln

template <int kBits, bool kSigned>
class std::numeric_limits<kiln::SmallInt<kBits, kSigned>> {
  using T = kiln::SmallInt<kBits, kSigned>;

 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = kSigned;
  static constexpr bool is_integer = true;
  static constexpr bool is_exact = true;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = true;
  static constexpr bool has_infinity = false;
  static constexpr bool has_quiet_NaN = false;
  static constexpr bool has_signaling_NaN = false;
  static constexpr int radix = 2;
  static constexpr int digits = kBits - (kSigned ? 1 : 0);
  static constexpr int digits10 = digits * 30103 / 100000;

  static constexpr T min() { return T(kSigned ? -(1 << digits) : 0); }
  static constexpr T max() { return T((1 << digits) - 1); }
  static constexpr T lowest() { return min(); }
  static constexpr T infinity() { return T(); }
  static constexpr T quiet_NaN() { return T(); }
};

// Ops on C++ scalars, one function each. Integer arithmetic is done unsigned, so that overflow
// wraps. Small floats are passed as floats, and rounded when the result is stored: their sums,
// differences, products, quotients and square roots are correctly rounded. Integers of less than a
// byte are passed as bytes, and wrapped when the result is stored; ops that depend on the width
// receive it.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/compare.h"
#include "tensor/small_float.h"
#include "tensor/small_int.h"

namespace kiln::interp {

template <typename T>
concept Float = std::floating_point<T>;
template <typename T>
concept Int = std::integral<T> && !std::same_as<T, bool>;

// Wide enough that no arithmetic on it is promoted to a signed int.
template <typename T>
using Wide = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;

template <Int T>
T Wrap(Wide<T> value) {
  return static_cast<T>(value);
}

// Functions with rounding, and sums, are computed in a wider type and rounded once: f32 and smaller
// types in double, f64 in long double, which is no wider on some machines.
template <FloatType T>
using Wider = std::conditional_t<std::same_as<T, double>, long double, double>;

// To the type of an array, once.
template <FloatType T, Float From>
T RoundTo(From x) {
  if constexpr (SmallFloatType<T>) {
    return T(static_cast<std::conditional_t<std::same_as<From, float>, float, double>>(x));
  } else {
    return static_cast<T>(x);
  }
}

template <typename T>
T Abs(T x) {
  if constexpr (Float<T>) return std::fabs(x);
  if constexpr (Int<T>) return x < 0 ? Wrap<T>(Wide<T>{0} - static_cast<Wide<T>>(x)) : x;
}

template <typename T>
T Negate(T x) {
  if constexpr (Float<T>) return -x;
  if constexpr (Int<T>) return Wrap<T>(Wide<T>{0} - static_cast<Wide<T>>(x));
}

template <typename T>
T Sign(T x) {
  if constexpr (Float<T>) {
    if (std::isnan(x) || x == 0) return x;
  }
  return static_cast<T>((x > T{0}) - (x < T{0}));
}

template <typename T>
T Not(T x) {
  if constexpr (std::same_as<T, bool>) return !x;
  if constexpr (Int<T>) return static_cast<T>(~x);
}

template <Float T>
T Logistic(T x) {
  // Each form is accurate where the other one's intermediate results overflow or cancel.
  if (x >= 0) return 1 / (1 + std::exp(-x));
  T e = std::exp(x);
  return e / (1 + e);
}

template <typename T>
T Add(T x, T y) {
  if constexpr (std::same_as<T, bool>) return x || y;
  if constexpr (Float<T>) return x + y;
  if constexpr (Int<T>) return Wrap<T>(static_cast<Wide<T>>(x) + static_cast<Wide<T>>(y));
}

template <typename T>
T Subtract(T x, T y) {
  if constexpr (Float<T>) return x - y;
  if constexpr (Int<T>) return Wrap<T>(static_cast<Wide<T>>(x) - static_cast<Wide<T>>(y));
}

template <typename T>
T Multiply(T x, T y) {
  if constexpr (std::same_as<T, bool>) return x && y;
  if constexpr (Float<T>) return x * y;
  if constexpr (Int<T>) return Wrap<T>(static_cast<Wide<T>>(x) * static_cast<Wide<T>>(y));
}

template <typename T>
T Divide(T x, T y) {
  if constexpr (Float<T>) {
    return x / y;
  } else {
    if (y == 0) return static_cast<T>(-1);
    if constexpr (std::signed_integral<T>) {
      // The smallest value has no positive counterpart: wrap.
      if (y == -1) return Negate(x);
    }
    return static_cast<T>(x / y);
  }
}

template <typename T>
T Remainder(T x, T y) {
  if constexpr (Float<T>) {
    return std::fmod(x, y);
  } else {
    if (y == 0) return x;
    if constexpr (std::signed_integral<T>) {
      if (y == -1) return 0;
    }
    return static_cast<T>(x % y);
  }
}

template <Int T>
T Power(T base, T exponent) {
  if constexpr (std::signed_integral<T>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == -1) return exponent % 2 == 0 ? T{1} : T{-1};
      return 0;
    }
  }
  // By squaring, wrapping.
  Wide<T> result = 1, factor = static_cast<Wide<T>>(base);
  for (auto e = static_cast<std::make_unsigned_t<T>>(exponent); e != 0; e >>= 1) {
    if (e & 1) result *= factor;
    factor *= factor;
  }
  return Wrap<T>(result);
}

// NaN if either is; -0 is below +0.
template <typename T>
T Maximum(T x, T y) {
  if constexpr (Float<T>) {
    if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<T>::quiet_NaN();
    if (x == y) return std::signbit(x) ? y : x;
  }
  return x > y ? x : y;
}
template <typename T>
T Minimum(T x, T y) {
  if constexpr (Float<T>) {
    if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<T>::quiet_NaN();
    if (x == y) return std::signbit(x) ? x : y;
  }
  return x < y ? x : y;
}

// The lowest bits, the value of an integer stored in a wider type.
template <Int T>
std::make_unsigned_t<T> LowBits(T x, int bits) {
  using U = std::make_unsigned_t<T>;
  const int above = static_cast<int>(sizeof(T)) * 8 - bits;
  return static_cast<U>(static_cast<U>(static_cast<U>(x) << above) >> above);
}
template <Int T>
T CountLeadingZeros(T x, int bits) {
  return static_cast<T>(std::countl_zero(LowBits(x, bits)) -
                        (static_cast<int>(sizeof(T)) * 8 - bits));
}
template <Int T>
T PopulationCount(T x, int bits) {
  return static_cast<T>(std::popcount(LowBits(x, bits)));
}

// The amount is read as unsigned.
template <Int T>
bool ShiftsOut(T amount, int bits) {
  return static_cast<std::make_unsigned_t<T>>(amount) >= static_cast<unsigned>(bits);
}
template <Int T>
T ShiftLeft(T x, T amount, int bits) {
  return ShiftsOut(amount, bits) ? T{0} : Wrap<T>(static_cast<Wide<T>>(x) << amount);
}
template <Int T>
T ShiftRightLogical(T x, T amount, int bits) {
  return ShiftsOut(amount, bits) ? T{0} : static_cast<T>(LowBits(x, bits) >> amount);
}
template <Int T>
T ShiftRightArithmetic(T x, T amount, int bits) {
  using S = std::make_signed_t<T>;
  // With the highest bit as the sign.
  const int above = static_cast<int>(sizeof(T)) * 8 - bits;
  const S value =
      static_cast<S>(static_cast<S>(Wrap<T>(static_cast<Wide<T>>(x) << above)) >> above);
  if (ShiftsOut(amount, bits)) return static_cast<T>(value < 0 ? S{-1} : S{0});
  return static_cast<T>(value >> amount);
}

// The nearest number of the format with these numbers of bits of exponent and mantissa; see
// ops.def.
template <std::unsigned_integral Bits>
Bits ReducePrecision(const FloatFormat& format, Bits x, int64_t exponent_bits,
                     int64_t mantissa_bits) {
  const bool negative = (x & format.sign_bit()) != 0;
  auto encode = [&](uint64_t magnitude) {
    if (magnitude > format.largest()) return static_cast<Bits>(EncodeOverflow(format, negative));
    const bool no_sign = magnitude == 0 && format.specials == Specials::kNanAsNegativeZero;
    return static_cast<Bits>((negative && !no_sign ? format.sign_bit() : 0) | magnitude);
  };
  uint64_t bits = x & format.magnitude_mask();
  if (IsNanBits(format, x)) return mantissa_bits > 0 ? x : encode(UINT64_MAX);
  if (mantissa_bits < format.mantissa) {
    // Adds just under half of the last kept bit, or half if that bit is set; a carry into the
    // exponent is the next power of two, or the infinity.
    const uint64_t last = uint64_t{1} << (format.mantissa - mantissa_bits);
    bits += (last >> 1) - 1 + ((bits & last) != 0);
    bits &= ~(last - 1);
  }
  if (exponent_bits < format.exponent) {
    const int64_t reach = (int64_t{1} << (exponent_bits - 1)) - 1;
    const int64_t power = static_cast<int64_t>(bits >> format.mantissa);
    if (power > format.bias + reach) return encode(UINT64_MAX);
    if (power <= format.bias - reach) {
      return static_cast<Bits>(EncodeScaled(format, negative, 0, 0));
    }
  }
  return encode(bits);
}

// The number next to x in the direction of y, by the bits, which count up with magnitudes.
template <std::unsigned_integral Bits>
Bits NextAfter(const FloatFormat& format, Bits x, Bits y) {
  if (IsNanBits(format, x) || IsNanBits(format, y)) {
    return static_cast<Bits>(EncodeNan(format, false, 0));
  }
  const double from = DecodeFloat<double>(format, x), to = DecodeFloat<double>(format, y);
  if (from == to) return y;
  const bool negative = from == 0 ? to < 0 : from < 0;
  const uint64_t magnitude = x & format.magnitude_mask();
  const uint64_t next = (from < to) != negative ? magnitude + 1 : magnitude - 1;
  const bool no_sign = next == 0 && format.specials == Specials::kNanAsNegativeZero;
  return static_cast<Bits>((negative && !no_sign ? format.sign_bit() : 0) | next);
}

template <size_t kBytes>
using SignedBits =
    std::conditional_t<kBytes == 2, int16_t, std::conditional_t<kBytes == 4, int32_t, int64_t>>;

// The bits of a float as an integer in IEEE 754's total order.
template <Int T>
T TotalOrderKey(T bits) {
  return bits < 0 ? static_cast<T>(bits ^ std::numeric_limits<T>::max()) : bits;
}

template <Int T>
T MultiplyHigh(T x, T y, int bits) {
  if constexpr (sizeof(T) == 8) {
    __extension__ using Big =
        std::conditional_t<std::signed_integral<T>, __int128, unsigned __int128>;
    return static_cast<T>((static_cast<Big>(x) * static_cast<Big>(y)) >> 64);
  } else {
    using Big = std::conditional_t<std::signed_integral<T>, int64_t, uint64_t>;
    return static_cast<T>((static_cast<Big>(x) * static_cast<Big>(y)) >> bits);
  }
}

// Rounds away from 0 with the fraction as its probability, by a random number of this many bits.
template <IntType To, Float From>
To StochasticConvert(From x, uint64_t random, int bits) {
  if (std::isnan(x)) return To(0);
  // The upper bound as a float may round up to a power of two, which no To reaches.
  using Limits = std::numeric_limits<To>;
  if (x >= static_cast<From>(Limits::max())) return Limits::max();
  if (x <= static_cast<From>(Limits::min())) return Limits::min();
  From magnitude = std::fabs(x);
  auto whole = static_cast<uint64_t>(magnitude);
  From fraction = magnitude - static_cast<From>(whole);
  auto fixed = static_cast<uint64_t>(std::ldexp(static_cast<double>(fraction), bits));
  if (random < fixed) ++whole;
  return static_cast<To>(std::signbit(x) ? 0 - whole : whole);
}

// Float to integer truncates and clamps, NaN to 0; to pred is 'not zero'; everything else is C++'s,
// with small floats rounded once.
template <typename To, typename From>
To Convert(From x) {
  if constexpr (SmallFloatType<From> && !std::same_as<To, From>) {
    return Convert<To>(static_cast<float>(x));
  } else if constexpr (std::same_as<To, bool>) {
    return x != From{0};
  } else if constexpr (Float<From> && IntType<To>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(x)) return To(0);
    // The bounds as floats: the upper one may round up to a power of two, which no To reaches.
    if (x <= static_cast<From>(Limits::min())) return Limits::min();
    if (x >= static_cast<From>(Limits::max())) return Limits::max();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace kiln::interp

// Ops on C++ scalars, one function each. Integer arithmetic is done unsigned, where overflow wraps.
// Halves come as floats and are rounded by whoever stores the result: a float sum, difference,
// product, quotient or square root of two halves rounds to the half that is nearest to the true
// one.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/compare.h"
#include "tensor/float16.h"

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

// Functions that round, and sums, are computed in a wider type and rounded once: f32 and halves in
// double, f64 in long double, which is no wider on some machines.
template <FloatType T>
using Wider = std::conditional_t<std::same_as<T, double>, long double, double>;

// To the type of an array, once.
template <FloatType T, Float From>
T RoundTo(From x) {
  if constexpr (HalfType<T>) {
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
  // Each form keeps its digits where the other one's intermediate results overflow or cancel.
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

// The amount is read as unsigned.
template <Int T>
bool ShiftsOut(T amount) {
  return static_cast<std::make_unsigned_t<T>>(amount) >= sizeof(T) * 8;
}
template <Int T>
T ShiftLeft(T x, T amount) {
  return ShiftsOut(amount) ? T{0} : Wrap<T>(static_cast<Wide<T>>(x) << amount);
}
template <Int T>
T ShiftRightLogical(T x, T amount) {
  using U = std::make_unsigned_t<T>;
  return ShiftsOut(amount) ? T{0} : static_cast<T>(static_cast<U>(x) >> amount);
}
template <Int T>
T ShiftRightArithmetic(T x, T amount) {
  using S = std::make_signed_t<T>;
  S value = static_cast<S>(x);
  if (ShiftsOut(amount)) return static_cast<T>(value < 0 ? S{-1} : S{0});
  return static_cast<T>(value >> amount);
}

// The nearest number of the format with so many bits of exponent and mantissa; see ops.def. The
// bits are those of a float that has `mantissa` bits of it, one sign, and an exponent.
template <std::unsigned_integral Bits>
Bits ReducePrecision(Bits x, int mantissa, int64_t exponent_bits, int64_t mantissa_bits) {
  const int exponent = static_cast<int>(sizeof(Bits)) * 8 - 1 - mantissa;
  const Bits one = 1, sign = static_cast<Bits>(x & (one << (sizeof(Bits) * 8 - 1)));
  const Bits infinity = static_cast<Bits>(((one << exponent) - 1) << mantissa);
  Bits bits = static_cast<Bits>(x ^ sign);
  if (bits > infinity) return mantissa_bits > 0 ? x : static_cast<Bits>(sign | infinity);  // NaN
  if (mantissa_bits < mantissa) {
    // Adds just under half of the last bit that is kept, or half where that bit is set; a carry
    // into the exponent is the next power of two, or the infinity.
    const Bits last = static_cast<Bits>(one << (mantissa - mantissa_bits));
    bits = static_cast<Bits>(bits + (last >> 1) - 1 + ((bits & last) != 0));
    bits &= static_cast<Bits>(~(last - 1));
  }
  if (exponent_bits < exponent) {
    const int64_t middle = (int64_t{1} << (exponent - 1)) - 1;
    const int64_t reach = (int64_t{1} << (exponent_bits - 1)) - 1;
    const int64_t power = static_cast<int64_t>(bits >> mantissa);
    if (power > middle + reach) bits = infinity;
    if (power <= middle - reach) bits = 0;
  }
  return static_cast<Bits>(sign | bits);
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
T MultiplyHigh(T x, T y) {
  if constexpr (sizeof(T) == 8) {
    __extension__ using Big =
        std::conditional_t<std::signed_integral<T>, __int128, unsigned __int128>;
    return static_cast<T>((static_cast<Big>(x) * static_cast<Big>(y)) >> 64);
  } else {
    using Big = std::conditional_t<std::signed_integral<T>, int64_t, uint64_t>;
    return static_cast<T>((static_cast<Big>(x) * static_cast<Big>(y)) >> (sizeof(T) * 8));
  }
}

// Rounds up, away from 0, with the probability that the fraction is, by a random number.
template <Int To, Float From, Int Random>
To StochasticConvert(From x, Random random) {
  if (std::isnan(x)) return 0;
  // The upper bound as a float may round up to a power of two, which no To reaches.
  if (x >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  if (x <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  From magnitude = std::fabs(x);
  auto whole = static_cast<uint64_t>(magnitude);
  From fraction = magnitude - static_cast<From>(whole);
  auto fixed = static_cast<Random>(
      std::ldexp(static_cast<double>(fraction), std::numeric_limits<Random>::digits));
  if (random < fixed) ++whole;
  return static_cast<To>(std::signbit(x) ? 0 - whole : whole);
}

// Float to integer truncates and clamps, NaN to 0; to pred is 'not zero'; everything else is C++'s,
// with halves rounded once.
template <typename To, typename From>
To Convert(From x) {
  if constexpr (HalfType<From> && !std::same_as<To, From>) {
    return Convert<To>(static_cast<float>(x));
  } else if constexpr (std::same_as<To, bool>) {
    return x != From{0};
  } else if constexpr (Float<From> && Int<To>) {
    if (std::isnan(x)) return 0;
    // The bounds as floats: the upper one may round up to a power of two, which no To reaches.
    if (x <= static_cast<From>(std::numeric_limits<To>::min())) {
      return std::numeric_limits<To>::min();
    }
    if (x >= static_cast<From>(std::numeric_limits<To>::max())) {
      return std::numeric_limits<To>::max();
    }
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace kiln::interp

#include "stablehlo/mlir/floats.h"

#include <bit>
#include <cmath>
#include <limits>

namespace kiln::mlir {
namespace {

constexpr int kDoubleMantissa = 52;

// s / 2^drop, rounded to nearest even.
uint64_t ShiftRounded(uint64_t s, int drop) {
  if (drop <= 0) return s;
  if (drop > 63) return 0;
  const uint64_t kept = s >> drop, rest = s & ((uint64_t{1} << drop) - 1);
  const uint64_t half = uint64_t{1} << (drop - 1);
  return kept + (rest > half || (rest == half && (kept & 1) != 0));
}

// tf32 has the upper bits of f32's mantissa.
constexpr int kTf32Shift = 13;

std::optional<uint64_t> EncodeSpecial(const FloatFormat& format, double value) {
  const uint64_t ones = (uint64_t{1} << (format.exponent + format.mantissa)) - 1;
  const uint64_t sign = uint64_t{std::signbit(value)} << (format.exponent + format.mantissa);
  switch (format.specials) {
    case FloatSpecials::kIeee: {
      const uint64_t infinity = ((uint64_t{1} << format.exponent) - 1) << format.mantissa;
      const uint64_t quiet = std::isnan(value) ? uint64_t{1} << (format.mantissa - 1) : 0;
      return (sign | infinity | quiet) << (format.name == "tf32" ? kTf32Shift : 0);
    }
    case FloatSpecials::kFn:
      if (std::isnan(value)) return sign | ones;
      return std::nullopt;
    case FloatSpecials::kFnuz:
      if (std::isnan(value)) return ones + 1;
      return std::nullopt;
    case FloatSpecials::kNone:
      return std::nullopt;
    case FloatSpecials::kExponent:
      if (std::isnan(value)) return ones;
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> EncodeFloat(FloatKind kind, double value) {
  const FloatFormat& format = FormatOf(kind);
  if (kind == FloatKind::kF64) return std::bit_cast<uint64_t>(value);
  const bool negative = std::signbit(value);
  const int mantissa = format.mantissa;
  const bool exponent_only = format.specials == FloatSpecials::kExponent;
  if (exponent_only && value <= 0) {
    if (value < 0) return std::nullopt;
    return 0;  // the least number, as there is no zero
  }
  const uint64_t ones = (uint64_t{1} << (format.exponent + mantissa)) - 1;
  if (!std::isfinite(value)) return EncodeSpecial(format, value);
  uint64_t magnitude = 0;
  if (value != 0) {
    int exponent = 0;
    const double fraction = std::frexp(std::abs(value), &exponent);  // in [0.5, 1)
    const auto s = static_cast<uint64_t>(std::ldexp(fraction, kDoubleMantissa + 1));
    const int biased = exponent - 1 + format.bias;
    if (exponent_only) {
      // Every pattern is a power of two; a tie goes up, as the one bit that there is is odd.
      const int rounded = biased + (fraction >= 0.75);
      if (rounded >= static_cast<int>(ones)) return std::nullopt;
      return static_cast<uint64_t>(rounded < 0 ? 0 : rounded);
    }
    int drop = kDoubleMantissa - mantissa;
    if (biased < 1) drop += 1 - biased;  // a subnormal has fewer bits
    // The hidden bit, and a carry out of the mantissa, count up the exponent.
    magnitude = ShiftRounded(s, drop);
    if (biased > 1) {
      if (biased > (1 << format.exponent)) return std::nullopt;
      magnitude += static_cast<uint64_t>(biased - 1) << mantissa;
    }
  }
  const uint64_t infinity = ((uint64_t{1} << format.exponent) - 1) << mantissa;
  switch (format.specials) {
    case FloatSpecials::kIeee:
      if (magnitude >= infinity) return std::nullopt;
      break;
    case FloatSpecials::kFn:
      if (magnitude >= ones) return std::nullopt;
      break;
    case FloatSpecials::kFnuz:
    case FloatSpecials::kNone:
    case FloatSpecials::kExponent:
      if (magnitude > ones) return std::nullopt;
      break;
  }
  const bool has_sign = negative && !(format.specials == FloatSpecials::kFnuz && magnitude == 0);
  uint64_t bits = magnitude | uint64_t{has_sign} << (format.exponent + mantissa);
  return kind == FloatKind::kTF32 ? bits << kTf32Shift : bits;
}

double DecodeFloat(FloatKind kind, uint64_t bits) {
  const FloatFormat& format = FormatOf(kind);
  if (kind == FloatKind::kF64) return std::bit_cast<double>(bits);
  if (kind == FloatKind::kTF32) bits >>= kTf32Shift;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const int mantissa = format.mantissa;
  const uint64_t ones = (uint64_t{1} << (format.exponent + mantissa)) - 1;
  const uint64_t magnitude = bits & ones;
  const bool negative = (bits >> (format.exponent + mantissa) & 1) != 0;
  const uint64_t infinity = ((uint64_t{1} << format.exponent) - 1) << mantissa;
  switch (format.specials) {
    case FloatSpecials::kIeee:
      if (magnitude < infinity) break;
      if (magnitude > infinity) return nan;
      return negative ? -std::numeric_limits<double>::infinity()
                      : std::numeric_limits<double>::infinity();
    case FloatSpecials::kFn:
      if (magnitude == ones) return nan;
      break;
    case FloatSpecials::kFnuz:
      if (magnitude == 0 && negative) return nan;
      break;
    case FloatSpecials::kNone:
      break;
    case FloatSpecials::kExponent:
      if (magnitude == ones) return nan;
      return std::ldexp(1.0, static_cast<int>(magnitude) - format.bias);
  }
  const int biased = static_cast<int>(magnitude >> mantissa);
  uint64_t s = magnitude & ((uint64_t{1} << mantissa) - 1);
  if (biased > 0) s |= uint64_t{1} << mantissa;
  const double value =
      std::ldexp(static_cast<double>(s), (biased > 0 ? biased : 1) - format.bias - mantissa);
  return negative ? -value : value;
}

}  // namespace kiln::mlir

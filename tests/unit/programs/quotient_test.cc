// Quotients of many numbers by one: the same bits as divisions.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/strings.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/labels.h"

namespace kiln {
namespace {

constexpr int64_t kRows = 600, kColumns = 1003;

template <typename T>
using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// Divisors of everyday sizes; every eighth of any bits.
template <typename T>
T Divisor(std::mt19937_64& random) {
  constexpr int kDigits = std::numeric_limits<T>::digits;
  if (random() % 8 == 0) return std::bit_cast<T>(static_cast<Bits<T>>(random()));
  T mantissa = 1 + std::ldexp(static_cast<T>(random() >> (65 - kDigits)), 1 - kDigits);
  // All ones, and next to a power of two: the inverse is harder to round.
  if (random() % 8 == 0) mantissa = 2 - std::numeric_limits<T>::epsilon();
  if (random() % 8 == 0) mantissa = 1 + std::numeric_limits<T>::epsilon();
  T value = std::ldexp(mantissa, static_cast<int>(random() % 50) - 25);
  return random() % 2 ? value : -value;
}

// Dividends of everyday sizes; products of the divisor and a number halfway between two, of which
// the quotient is as close to a tie as one can be; special values, and any bits.
template <typename T>
T Dividend(std::mt19937_64& random, T divisor) {
  constexpr int kDigits = std::numeric_limits<T>::digits;
  using L = std::numeric_limits<T>;
  constexpr T kSpecial[] = {
      0,        -T{0},           L::infinity(), -L::infinity(), L::quiet_NaN(),
      L::min(), L::denorm_min(), L::max(),      -L::max(),      1};
  switch (random() % 64) {
    case 0:
      return std::bit_cast<T>(static_cast<Bits<T>>(random()));
    case 1:
      return kSpecial[random() % std::size(kSpecial)];
    default:
      break;
  }
  int exponent = static_cast<int>(random() % 60) - 30;
  if (random() % 3 == 0) {
    return std::ldexp(static_cast<T>(static_cast<int64_t>(random() >> (64 - kDigits))), exponent);
  }
  auto halfway =
      static_cast<long double>((random() >> (65 - kDigits)) * 2 + 1 + (uint64_t{1} << kDigits));
  T x = static_cast<T>(halfway * static_cast<long double>(divisor));
  if (random() % 4 == 0) x = std::nextafter(x, T{0});
  return std::ldexp(x, exponent - kDigits);
}

template <typename T>
void CheckQuotients(std::string_view type, int bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  ElementType element = *TypeByName(type);
  Literal x(Shape(element, {kRows, kColumns})), s(Shape(element, {kRows}));
  for (int64_t row = 0; row < kRows; ++row) {
    T divisor = s.values<T>()[static_cast<size_t>(row)] = Divisor<T>(random);
    // Whole rows without special values too: what is out of the ordinary takes another way.
    for (int64_t c = 0; c < kColumns; ++c) {
      T value = Dividend<T>(random, divisor);
      if (row % 2 == 0 && !(std::fabs(value) < 1e20f && std::fabs(value) > 1e-20f)) value = 0.75;
      x.values<T>()[static_cast<size_t>(row * kColumns + c)] = value;
    }
  }
  std::string shape = Cat(type, "[", kRows, ",", kColumns, "]");
  auto module = ir::ParseOrDie(
      Cat("HloModule m\nENTRY e {\n  x = ", shape, " parameter(0)\n  s = ", type, "[", kRows,
          "] parameter(1)\n  b = ", shape, " broadcast(s), dimensions={0}\n  ROOT q = ", shape,
          " divide(x, b)\n}\n"));
  auto result = testing::RunCompiled(*module, {x, s}, true, bytes);
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    T dividend = x.values<T>()[static_cast<size_t>(i)];
    T divisor = s.values<T>()[static_cast<size_t>(i / kColumns)];
    T expected = dividend / divisor, got = result->template values<T>()[static_cast<size_t>(i)];
    bool same =
        std::memcmp(&expected, &got, sizeof(T)) == 0 || (got != got && expected != expected);
    ASSERT_TRUE(same) << dividend << " / " << divisor << " is " << expected << ", not " << got;
  }
}

TEST(Quotient, F32HasTheBitsOfADivision) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    for (int bytes : {64, 32}) CheckQuotients<float>("f32", bytes, seed);
  }
}

TEST(Quotient, F64HasTheBitsOfADivision) {
  for (uint64_t seed = 5; seed <= 8; ++seed) {
    for (int bytes : {64, 32}) CheckQuotients<double>("f64", bytes, seed);
  }
}

double NumberOfBf16(uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
}

// The nearest bf16 to a number that is none of those halfway, or as short as one.
uint16_t NearestBf16(double x) {
  const double unit = std::ldexp(1, std::max(x == 0 ? -126 : std::ilogb(x), -126) - 7);
  const double nearest = std::isinf(x) ? x : std::nearbyint(x / unit) * unit;
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(nearest)) >> 16);
}

// Every dividend by divisors of all mantissas, and of the exponents where there is a limit. Halfway
// between two subnormals a quotient can be a tie.
TEST(Quotient, Bf16HasTheBitsOfADivision) {
  std::vector<uint16_t> divisors = {0x8000, 0xbf80, 0xc040};
  for (int exponent : {0, 1, 26, 27, 28, 127, 226, 227, 228, 252, 254, 255}) {
    for (int mantissa = 0; mantissa < 128; mantissa += exponent == 127 ? 1 : 15) {
      divisors.push_back(static_cast<uint16_t>(exponent << 7 | mantissa));
    }
  }
  const auto rows = static_cast<int64_t>(divisors.size());
  Literal x(Shape(ElementType::kBF16, {1 << 16})), s(Shape(ElementType::kBF16, {rows}));
  for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
    x.values<uint16_t>()[bits] = static_cast<uint16_t>(bits);
  }
  std::ranges::copy(divisors, s.values<uint16_t>().begin());
  const std::string shape = Cat("bf16[", rows, ",65536]");
  auto module = ir::ParseOrDie(
      Cat("HloModule m\nENTRY e {\n  x = bf16[65536] parameter(0)\n  s = bf16[", rows,
          "] parameter(1)\n  a = ", shape, " broadcast(x), dimensions={1}\n  b = ", shape,
          " broadcast(s), dimensions={0}\n  ROOT q = ", shape, " divide(a, b)\n}\n"));
  auto result = testing::RunCompiled(*module, {x, s}, true, 64);
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  const uint16_t* got = result->values<uint16_t>().data();
  for (const uint16_t divisor : divisors) {
    for (uint32_t bits = 0; bits < 1 << 16; ++bits, ++got) {
      const double wanted = NumberOfBf16(static_cast<uint16_t>(bits)) / NumberOfBf16(divisor);
      const bool good =
          std::isnan(wanted) ? std::isnan(NumberOfBf16(*got)) : *got == NearestBf16(wanted);
      ASSERT_TRUE(good) << bits << " / " << divisor << " is " << *got;
    }
  }
}

// A sum that is not a number stays one, whatever the payload of an operand.
TEST(Rounding, Bf16KeepsNans) {
  Literal x(Shape(ElementType::kBF16, {1 << 16}));
  for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
    x.values<uint16_t>()[bits] = static_cast<uint16_t>(bits);
  }
  for (std::string_view op :
       {"add(x, y)", "subtract(y, x)", "multiply(y, x)", "divide(x, y)", "sqrt(x)"}) {
    auto module = ir::ParseOrDie(
        Cat("HloModule m\nENTRY e {\n  x = bf16[65536] parameter(0)\n  c = bf16[] constant(-inf)\n"
            "  y = bf16[65536] broadcast(c), dimensions={}\n  ROOT r = bf16[65536] ",
            op, "\n}\n"));
    auto result = testing::RunCompiled(*module, {x}, true, 64);
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
      if (!std::isnan(NumberOfBf16(static_cast<uint16_t>(bits)))) continue;
      ASSERT_TRUE(std::isnan(NumberOfBf16(result->values<uint16_t>()[bits]))) << op << ": " << bits;
    }
  }
}

TEST(SlowQuotient, ManyPairs) {
  for (uint64_t seed = 100; seed < 300; ++seed) {
    CheckQuotients<float>("f32", 64, seed);
    CheckQuotients<double>("f64", 64, seed);
  }
}

KILN_LABEL(slow, "SlowQuotient");

}  // namespace
}  // namespace kiln

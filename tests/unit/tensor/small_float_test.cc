// The floats of 16 bits: conversions at every value and between every two neighbours, and text.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/strings.h"
#include "support/hlo.h"
#include "support/labels.h"
#include "tensor/literal.h"
#include "tensor/small_float.h"

namespace kiln {
namespace {

template <typename T>
class Halves : public ::testing::Test {};
using HalfTypes = ::testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(Halves, HalfTypes);

template <typename T>
constexpr ElementType kTypeOf = std::same_as<T, Float16> ? ElementType::kF16 : ElementType::kBF16;

// What the bits stand for, by IEEE 754's definition.
template <typename T>
double ValueOf(uint16_t bits) {
  constexpr int kMantissa = std::numeric_limits<T>::digits - 1;
  constexpr int kExponent = 15 - kMantissa;
  int exponent = bits >> kMantissa & ((1 << kExponent) - 1);
  int mantissa = bits & ((1 << kMantissa) - 1);
  int bias = (1 << (kExponent - 1)) - 1;
  double magnitude;
  if (exponent == (1 << kExponent) - 1) {
    magnitude = mantissa == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, 1 - bias - kMantissa);
  } else {
    magnitude = std::ldexp(mantissa + (1 << kMantissa), exponent - bias - kMantissa);
  }
  return std::copysign(magnitude, bits >> 15 ? -1.0 : 1.0);
}

template <typename T>
constexpr uint16_t kInfinity = std::numeric_limits<T>::infinity().bits();

TYPED_TEST(Halves, EveryValueGoesToFloatAndDoubleAndBack) {
  using T = TypeParam;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    T half = T::FromBits(static_cast<uint16_t>(bits));
    double value = ValueOf<T>(static_cast<uint16_t>(bits));
    double wide = static_cast<double>(half);
    float narrow = static_cast<float>(half);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(wide) && std::isnan(narrow)) << bits;
      // Quiet, and otherwise the same.
      uint16_t quiet = static_cast<uint16_t>(bits | std::numeric_limits<T>::quiet_NaN().bits());
      ASSERT_EQ(T(wide).bits(), quiet) << bits;
      ASSERT_EQ(T(narrow).bits(), quiet) << bits;
      ASSERT_FALSE(half == half);
      continue;
    }
    ASSERT_EQ(wide, value) << bits;
    ASSERT_EQ(narrow, value) << bits;
    ASSERT_EQ(std::signbit(wide), bits >> 15 != 0);
    ASSERT_EQ(T(wide).bits(), bits);
    ASSERT_EQ(T(narrow).bits(), bits);
    ASSERT_EQ((-half).bits(), bits ^ 0x8000);
  }
}

// Between neighbours: the nearer one, and halfway that with an even mantissa. After the largest
// number comes infinity, as if the numbers went on.
template <typename T, typename From>
void CheckRounding() {
  for (uint16_t bits = 0; bits < kInfinity<T>; ++bits) {
    double low = ValueOf<T>(bits);
    double high = bits + 1 == kInfinity<T> ? std::ldexp(1.0, std::numeric_limits<T>::max_exponent)
                                           : ValueOf<T>(static_cast<uint16_t>(bits + 1));
    auto middle = static_cast<From>((low + high) / 2);
    // Halfway between the least bf16s is no float.
    if (static_cast<double>(middle) != (low + high) / 2) continue;
    uint16_t even = bits & 1 ? bits + 1 : bits;
    for (int sign : {0, 0x8000}) {
      From s = sign ? -1 : 1;
      ASSERT_EQ(T(s * middle).bits(), even | sign) << bits;
      ASSERT_EQ(T(s * std::nextafter(middle, From{0})).bits(), bits | sign) << bits;
      ASSERT_EQ(T(s * std::nextafter(middle, From{HUGE_VALF})).bits(), (bits + 1) | sign) << bits;
    }
  }
}

TYPED_TEST(Halves, DoublesAndFloatsRoundToTheNearest) {
  CheckRounding<TypeParam, double>();
  CheckRounding<TypeParam, float>();
}

TYPED_TEST(Halves, DoublesRoundOnce) {
  using T = TypeParam;
  // As a float this would be halfway, and then even.
  double step = static_cast<double>(std::numeric_limits<T>::epsilon());
  EXPECT_EQ(T(1 + step / 2 + 0x1p-40).bits(), T(1.0).bits() + 1);
  EXPECT_EQ(T(1 + step * 3 / 2 - 0x1p-40).bits(), T(1.0).bits() + 1);
  EXPECT_EQ(T(1e300).bits(), kInfinity<T>);
  EXPECT_EQ(T(-1e-300).bits(), 0x8000);
  EXPECT_EQ(T(std::numeric_limits<double>::denorm_min()).bits(), 0);
}

TEST(HalvesOfInts, RoundOnce) {
  EXPECT_EQ(Float16(2049).bits(), Float16(2048.0).bits());
  EXPECT_EQ(Float16(2051).bits(), Float16(2052.0).bits());
  EXPECT_EQ(Float16(65519).bits(), Float16(65504.0).bits());
  EXPECT_EQ(Float16(65520).bits(), 0x7c00);
  EXPECT_EQ(Float16(INT64_MIN).bits(), 0xfc00);
  EXPECT_EQ(BFloat16(INT64_MIN).bits(), BFloat16(-0x1p63).bits());
  EXPECT_EQ(BFloat16(UINT64_MAX).bits(), BFloat16(0x1p64).bits());
  // Halfway, and one off it, which a float or a double would not know.
  const int64_t middle = (int64_t{1} << 62) + (int64_t{1} << 54);
  EXPECT_EQ(BFloat16(middle).bits(), BFloat16(0x1p62).bits());
  EXPECT_EQ(BFloat16(middle + 1).bits(), BFloat16(0x1p62).bits() + 1);
  EXPECT_EQ(BFloat16(middle - 1).bits(), BFloat16(0x1p62).bits());
  EXPECT_EQ(BFloat16(-middle - 1).bits(), BFloat16(-0x1p62).bits() + 1);
  EXPECT_EQ(Float16(true).bits(), Float16(1.0).bits());
}

TYPED_TEST(Halves, Limits) {
  using T = TypeParam;
  using L = std::numeric_limits<T>;
  auto value = [](T x) { return static_cast<double>(x); };
  EXPECT_EQ(value(L::max()), std::ldexp(2 - std::ldexp(1.0, 1 - L::digits), L::max_exponent - 1));
  EXPECT_EQ(value(L::lowest()), -value(L::max()));
  EXPECT_EQ(value(L::min()), std::ldexp(1.0, L::min_exponent - 1));
  EXPECT_EQ(value(L::epsilon()), std::ldexp(1.0, 1 - L::digits));
  EXPECT_EQ(value(L::denorm_min()), std::ldexp(1.0, L::min_exponent - L::digits));
  EXPECT_TRUE(std::isinf(value(L::infinity())) && std::isnan(value(L::quiet_NaN())));
  EXPECT_TRUE(T(1.0) < T(2.0) && T(0.0) == T(-0.0) && !(L::quiet_NaN() < T(1.0)));
  EXPECT_EQ(static_cast<int32_t>(T(-2.5)), -2);
  EXPECT_EQ(static_cast<float>(BFloat16(T(1.5))), 1.5f);
}

TYPED_TEST(Halves, TextReadsBackAtEveryValue) {
  using T = TypeParam;
  Literal all(Shape(kTypeOf<T>, {0x10000}));
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    all.values<uint16_t>()[bits] = static_cast<uint16_t>(bits);
  }
  auto module = ir::ParseOrDie(Cat("HloModule m\nENTRY e {\n  ROOT c = ", TypeName(kTypeOf<T>),
                                   "[65536] constant(", all.ToString(), ")\n}\n"));
  EXPECT_TRUE(module->entry()->root()->literal() == all);
}

TEST(HalfText, IsTheShortest) {
  auto text = [](ElementType type, double value) {
    return Literal::ScalarOf(type, value).ToString();
  };
  EXPECT_EQ(text(ElementType::kF16, 0.1), "0.1");
  EXPECT_EQ(text(ElementType::kF16, 65504), "65504");
  EXPECT_EQ(text(ElementType::kF16, 1.0 / 3), "0.3333");
  EXPECT_EQ(text(ElementType::kF16, 0x1p-24), "6e-08");
  EXPECT_EQ(text(ElementType::kF16, -2), "-2");
  EXPECT_EQ(text(ElementType::kF16, 1e9), "inf");
  EXPECT_EQ(text(ElementType::kBF16, 0.1), "0.1");
  EXPECT_EQ(text(ElementType::kBF16, 3.3895313892515355e38), "3.39e+38");
  EXPECT_EQ(text(ElementType::kBF16, 256), "256");
  EXPECT_EQ(text(ElementType::kBF16, 1.0 / 3), "0.334");
}

KILN_LABEL(text, "Halves", "HalfText");

}  // namespace
}  // namespace kiln

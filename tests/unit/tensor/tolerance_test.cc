#include "tensor/tolerance.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace kiln {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Literal Floats(std::vector<float> values) {
  const Shape shape(ElementType::kF32, {static_cast<int64_t>(values.size())});
  return Literal::Array<float>(shape, values);
}

uint64_t Ulps(float x, float y) {
  return UlpDifference(ElementType::kF32, reinterpret_cast<const std::byte*>(&x),
                       reinterpret_cast<const std::byte*>(&y), 0);
}

std::string Check(std::string_view target, std::string_view config, const Literal& x,
                  const Literal& y) {
  auto tolerance = ToleranceOfCheck(target, config);
  if (!tolerance.ok()) return tolerance.status().ToString();
  return CheckClose(x, y, **tolerance).ToString();
}

TEST(Tolerance, StepsBetweenFloats) {
  EXPECT_EQ(Ulps(1, 1), 0u);
  EXPECT_EQ(Ulps(1, std::nextafter(1.0f, 2.0f)), 1u);
  EXPECT_EQ(Ulps(0.0f, -0.0f), 0u);
  const float least = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(Ulps(-least, 2 * least), 3u);
  EXPECT_EQ(Ulps(kInf, kInf), 0u);
  EXPECT_EQ(Ulps(kInf, -kInf), UINT64_MAX);
  EXPECT_EQ(Ulps(kInf, std::numeric_limits<float>::max()), UINT64_MAX);
  EXPECT_EQ(Ulps(kNan, -kNan), 0u);
  EXPECT_EQ(Ulps(kNan, 0), UINT64_MAX);
}

TEST(Tolerance, StepsOfOtherTypes) {
  auto steps = [](ElementType type, double x, double y) {
    const Literal a = Literal::ScalarOf(type, x), b = Literal::ScalarOf(type, y);
    return UlpDifference(type, a.data(), b.data(), 0);
  };
  EXPECT_EQ(steps(ElementType::kBF16, 1, 1.0078125), 1u);
  EXPECT_EQ(steps(ElementType::kF16, 1, 1.0009765625), 1u);
  EXPECT_EQ(steps(ElementType::kF64, 1, std::nextafter(1.0, 2.0)), 1u);
  EXPECT_EQ(steps(ElementType::kF64, -1e308, 1e308), 2 * (steps(ElementType::kF64, 0, 1e308)));
  EXPECT_EQ(steps(ElementType::kF8E4M3FN, 1, 1.25), 2u);
  // No sign, and no zero: the least number is 2^-127.
  EXPECT_EQ(steps(ElementType::kF8E8M0FNU, 1, 4), 2u);
}

TEST(Tolerance, OfComplexNumbersTheFartherPartCounts) {
  const float x[] = {1, 2}, y[] = {std::nextafter(1.0f, 2.0f), 2};
  auto bytes = [](const float* p) { return reinterpret_cast<const std::byte*>(p); };
  EXPECT_EQ(UlpDifference(ElementType::kC64, bytes(x), bytes(y), 0), 1u);
  EXPECT_EQ(UlpDifference(ElementType::kC64, bytes(y), bytes(x), 0), 1u);
}

TEST(Tolerance, Equality) {
  EXPECT_EQ(Check("check.expect_eq", "", Floats({0.0f, 1}), Floats({-0.0f, 1})), "OK");
  EXPECT_EQ(Check("check.expect_eq", "", Floats({kNan}), Floats({kNan})),
            "FAILED_PRECONDITION: element {0} is nan and should be nan: they must be equal");
  const std::vector<int32_t> x = {1, 2, 3, 4}, y = {1, 3, 3, 5};
  const Shape shape(ElementType::kS32, {2, 2});
  EXPECT_EQ(Check("check.expect_eq", "", Literal::Array<int32_t>(shape, x),
                  Literal::Array<int32_t>(shape, y)),
            "FAILED_PRECONDITION: element {0,1} is 2 and should be 3: they must be equal (2 of 4 "
            "elements)");
  EXPECT_EQ(Check("check.expect_eq", "", Floats({1, 2}), Floats({1})),
            "INVALID_ARGUMENT: the value has the shape f32[2], and what is expected f32[1]");
}

TEST(Tolerance, Tolerances) {
  EXPECT_EQ(
      Check("check.expect_almost_eq", "", Floats({1, kNan, kInf}), Floats({1.0009f, kNan, kInf})),
      "OK");
  EXPECT_NE(Check("check.expect_almost_eq", "", Floats({1}), Floats({1.002f})), "OK");
  EXPECT_NE(Check("check.expect_almost_eq", "tolerance=0.0001", Floats({1}), Floats({1.0009f})),
            "OK");
  EXPECT_NE(Check("check.expect_almost_eq", "", Floats({kInf}), Floats({-kInf})), "OK");
  EXPECT_NE(Check("check.expect_almost_eq", "", Floats({kNan}), Floats({1})), "OK");
  EXPECT_EQ(Check("check.eq", "", Floats({1}), Floats({1.00009f})), "OK");
  EXPECT_NE(Check("check.eq", "", Floats({1}), Floats({1.0002f})), "OK");
  EXPECT_EQ(Check("check.eq", "tolerance=much", Floats({1}), Floats({1})),
            "INVALID_ARGUMENT: tolerance is 'much'; expected a number of at least 0");
}

TEST(Tolerance, Steps) {
  const float next = std::nextafter(1.0f, 2.0f);
  EXPECT_EQ(Check("check.expect_close", "", Floats({1}), Floats({next})), "OK");
  EXPECT_EQ(Check("check.expect_close", "max_ulp_difference=0", Floats({1}), Floats({next})),
            "FAILED_PRECONDITION: element {0} is 1 and should be 1.0000001: they are 1 ULP apart; "
            "expected at most 0");
  EXPECT_EQ(Check("check.expect_close", "max_ulp_difference=3 min_ulp_difference=2", Floats({1}),
                  Floats({next})),
            "FAILED_PRECONDITION: element {0} is 1 and should be 1.0000001: they are 1 ULP apart; "
            "expected 2 to 3");
  EXPECT_EQ(Check("check.expect_close",
                  "max_ulp_difference=18446744073709551615 "
                  "min_ulp_difference=18446744073709551615",
                  Floats({kInf}), Floats({kNan})),
            "OK");
  EXPECT_EQ(Check("check.expect_close", "max_ulp_difference=-1", Floats({1}), Floats({1})),
            "INVALID_ARGUMENT: max_ulp_difference is '-1'; expected a number of steps");
}

TEST(Tolerance, OtherTargetsAreNoChecks) {
  for (std::string_view target : {"check.expect_serialized_eq", "foo", ""}) {
    auto tolerance = ToleranceOfCheck(target, "");
    ASSERT_TRUE(tolerance.ok());
    EXPECT_FALSE(tolerance->has_value()) << target;
  }
}

TEST(Tolerance, WordsOfConfigs) {
  EXPECT_EQ(ConfigWord("a=1 bc=2", "bc"), "2");
  EXPECT_EQ(ConfigWord("a=1 bc=2", "b"), "");
  EXPECT_EQ(ConfigWord("", "a"), "");
}

}  // namespace
}  // namespace kiln

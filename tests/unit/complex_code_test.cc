// Functions of complex numbers in compiled code, on the CPU and the emulated GPU, against the
// evaluator, which interp_complex_test.cc holds against MPFR; the slow ones against MPFR itself.
// docs/numerics.md has what they print.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

#include "base/strings.h"
#include "compiled_test_util.h"
#include "complex_reference.h"
#include "complex_samples.h"
#include "gpu_test_util.h"
#include "hlo_test_util.h"
#include "interp/interpreter.h"
#include "interp_test_util.h"

namespace kiln {
namespace {

using testing::BigComplex;
using testing::ComplexSamples;
using testing::Real;

// Both parts are within so many units of the last place.
constexpr double kBound = 3;

template <typename T>
constexpr ElementType kTypeOf = sizeof(T) == 4 ? ElementType::kC64 : ElementType::kC128;

template <typename T>
Literal ToLiteral(const std::vector<std::complex<T>>& values) {
  return Literal::Array<std::complex<T>>(Shape(kTypeOf<T>, {static_cast<int64_t>(values.size())}),
                                         values);
}

std::unique_ptr<ir::Module> ModuleOf(std::string_view op, const std::vector<Literal>& operands,
                                     std::string_view result = "") {
  const std::string shape = operands[0].shape().ToString();
  std::string text = "HloModule m\nENTRY e {\n", names;
  for (size_t i = 0; i < operands.size(); ++i) {
    text += Cat("  x", i, " = ", operands[i].shape().ToString(), " parameter(", i, ")\n");
    names += Cat(i > 0 ? ", x" : "x", i);
  }
  return ir::ParseOrDie(
      Cat(text, "  ROOT r = ", result.empty() ? shape : result, " ", op, "(", names, ")\n}\n"));
}

struct Case {
  const char* op;
  // Whether C says what sign a zero has.
  bool signed_zeros = true;
};
void PrintTo(const Case& c, std::ostream* to) { *to << c.op; }
const Case kCases[] = {
    {"acos"},
    {"acosh"},
    {"asin"},
    {"asinh"},
    {"atanh"},
    {"cbrt", false},
    {"cosh"},
    {"cosine"},
    {"exponential"},
    {"exponential-minus-one", false},
    {"log"},
    {"log-plus-one", false},
    {"logistic", false},
    {"rsqrt"},
    {"sign", false},
    {"sine"},
    {"sinh"},
    {"sqrt"},
    {"tan"},
    {"tanh"},
};

// The real part of exp(z) - 1 and of the logistic function is 0 on curves, next to which it is the
// difference of two numbers that are as near to each other as operands can tell. It keeps its last
// places until it is so much smaller than these.
template <typename T>
constexpr double kDifference = sizeof(T) == 4 ? 0x1p-34 : 0x1p-50;
template <typename T>
double LeastOf(std::string_view op, const std::complex<T>& z) {
  const double x = z.real(), size = std::fabs(x);
  if (op == "exponential-minus-one") return kDifference<T> * std::fabs(std::expm1(x));
  if (op != "logistic" || x >= 0) return 0;
  const double e = std::exp(-size), c = std::cos(z.imag() / 2.0), rest = -std::expm1(-size);
  return kDifference<T> * e * rest / (rest * rest + 4 * e * c * c);
}

// The distance in units of the last place that T has at the expected value, or at `least`.
template <typename T>
double Distance(T got, T expected, double least) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(expected) || std::isnan(got))
    return std::isnan(got) == std::isnan(expected) ? 0 : HUGE_VAL;
  if (got == expected) return 0;
  if (std::isinf(expected) || std::isinf(got)) {
    // The number after the largest one.
    const T largest = std::isinf(expected) ? got : expected;
    const bool next = std::signbit(got) == std::signbit(expected) &&
                      std::fabs(largest) >= Limits::max() * (1 - 2 * Limits::epsilon());
    return next ? 2 : HUGE_VAL;
  }
  const double size =
      std::max(std::fabs(static_cast<double>(expected)), std::min<double>(least, Limits::max()));
  const int exponent =
      std::max(size == 0 ? Limits::min_exponent : std::ilogb(size), Limits::min_exponent - 1);
  const double off = std::fabs(static_cast<double>(got) / 2 - static_cast<double>(expected) / 2);
  return std::ldexp(std::ldexp(off, -exponent / 2), Limits::digits - (exponent - exponent / 2));
}

template <typename T>
std::string Show(const std::complex<T>& z) {
  char text[100];
  std::snprintf(text, sizeof text, "(%.17g, %.17g)", static_cast<double>(z.real()),
                static_cast<double>(z.imag()));
  return text;
}

template <typename T>
void Compare(const Case& c, const std::vector<std::complex<T>>& points, const Literal& got,
             const Literal& expected) {
  int failures = 0;
  for (size_t i = 0; i < points.size() && failures < 5; ++i) {
    const std::complex<T> a = got.values<std::complex<T>>()[i];
    const std::complex<T> e = expected.values<std::complex<T>>()[i];
    // Beside a NaN C says no signs.
    const bool no_signs = std::isnan(e.real()) || std::isnan(e.imag());
    auto right = [&](T x, T y, double least) {
      if (no_signs) x = std::fabs(x), y = std::fabs(y);
      if (y == 0 && x == 0 && c.signed_zeros) return std::signbit(x) == std::signbit(y);
      return Distance(x, y, least) <= kBound;
    };
    const bool ok =
        right(a.real(), e.real(), LeastOf(c.op, points[i])) && right(a.imag(), e.imag(), 0);
    failures += !ok;
    EXPECT_TRUE(ok) << c.op << " of " << Show(points[i]) << " is " << Show(a) << "; expected "
                    << Show(e);
  }
}

template <typename T>
void CheckCase(const Case& c) {
  ComplexSamples<T> samples(5);
  std::vector<std::complex<T>> points;
  for (int i = 0; i < 2047; ++i) points.push_back(i % 8 ? samples.Next() : samples.NextSpecial());
  auto few = std::vector<std::complex<T>>(points.begin(), points.begin() + 301);
  const std::vector<Literal> arguments = {ToLiteral(points)}, few_arguments = {ToLiteral(few)};
  auto module = ModuleOf(c.op, arguments), few_module = ModuleOf(c.op, few_arguments);
  Result<Literal> expected = interp::Evaluate(*module, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  Result<Literal> got = testing::RunCompiled(*module, arguments, true);
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  Compare(c, points, *got, *expected);
  // Narrow vectors have functions of their own.
  Result<Literal> narrow = testing::RunCompiled(*module, arguments, true, 16);
  ASSERT_TRUE(narrow.ok()) << narrow.status().ToString();
  Compare(c, points, *narrow, *expected);
  Result<Literal> few_expected = interp::Evaluate(*few_module, few_arguments);
  ASSERT_TRUE(few_expected.ok()) << few_expected.status().ToString();
  auto loaded = testing::LoadOnGpu(*few_module, true);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  Result<Literal> from_gpu = testing::RunOnGpu(*loaded, few_arguments);
  ASSERT_TRUE(from_gpu.ok()) << from_gpu.status().ToString();
  Compare(c, few, *from_gpu, *few_expected);
}

class ComplexCodeOf : public ::testing::TestWithParam<Case> {};
TEST_P(ComplexCodeOf, C64) { CheckCase<float>(GetParam()); }
TEST_P(ComplexCodeOf, C128) { CheckCase<double>(GetParam()); }

template <typename T>
void Measure(const Case& c) {
  const auto* reference =
      std::find_if(std::begin(testing::kComplexReferences), std::end(testing::kComplexReferences),
                   [&](const auto& r) { return std::string_view(r.op) == c.op; });
  ASSERT_NE(reference, std::end(testing::kComplexReferences));
  ComplexSamples<T> samples(6);
  std::vector<std::complex<T>> points;
  for (int i = 0; i < 100000; ++i) points.push_back(samples.Next());
  const std::vector<Literal> arguments = {ToLiteral(points)};
  auto module = ModuleOf(c.op, arguments);
  Result<Literal> got = testing::RunCompiled(*module, arguments, true);
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  double worst[2] = {0, 0};
  std::complex<T> where[2];
  for (size_t i = 0; i < points.size(); ++i) {
    const std::complex<T>& z = points[i];
    Real::Precision() = testing::PrecisionFor(z);
    const BigComplex e = reference->value({Real(z.real()), Real(z.imag())});
    // At a pole, or where the reference's own numbers are not enough.
    if (!mpfr_number_p(e.re.value) || !mpfr_number_p(e.im.value)) continue;
    const std::complex<T> value = got->values<std::complex<T>>()[i];
    const double errors[2] = {testing::UlpError(value.real(), e.re, LeastOf(c.op, z)),
                              testing::UlpError(value.imag(), e.im)};
    for (int part : {0, 1}) {
      if (errors[part] > worst[part]) worst[part] = errors[part], where[part] = z;
    }
  }
  for (int part : {0, 1}) {
    EXPECT_LE(worst[part], kBound)
        << c.op << (part ? ", imaginary part of " : ", real part of ") << Show(where[part]);
  }
  std::printf("| `%s` | %s | %.3f | %.3f |\n", c.op, sizeof(T) == 4 ? "c64" : "c128", worst[0],
              worst[1]);
}

class ComplexMany : public ::testing::TestWithParam<Case> {};
TEST_P(ComplexMany, C64) { Measure<float>(GetParam()); }
TEST_P(ComplexMany, C128) { Measure<double>(GetParam()); }

auto name_of = [](const auto& info) {
  std::string name = info.param.op;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
};
INSTANTIATE_TEST_SUITE_P(All, ComplexCodeOf, ::testing::ValuesIn(kCases), name_of);
INSTANTIATE_TEST_SUITE_P(SlowComplex, ComplexMany, ::testing::ValuesIn(kCases), name_of);

}  // namespace
}  // namespace kiln

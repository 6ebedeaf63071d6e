// Functions of complex numbers in compiled code, on the CPU and the emulated GPU, against the
// evaluator, which interp/complex_test.cc holds against MPFR; the slow ones against MPFR itself.
// docs/numerics.md has what they print.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdio>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "ops/accuracy.h"
#include "support/compiled.h"
#include "support/complex_reference.h"
#include "support/complex_samples.h"
#include "support/gpu.h"
#include "support/hlo.h"
#include "support/interp.h"
#include "support/labels.h"
#include "support/literal.h"

namespace kiln {
namespace {

using testing::BigComplex;
using testing::ComplexSamples;
using testing::Real;

template <typename T>
constexpr ElementType kTypeOf = sizeof(T) == 4 ? ElementType::kC64 : ElementType::kC128;

template <typename T>
Literal ToLiteral(const std::vector<std::complex<T>>& values) {
  return Literal::Array<std::complex<T>>(Shape(kTypeOf<T>, {static_cast<int64_t>(values.size())}),
                                         values);
}

std::unique_ptr<ir::Module> ModuleOf(std::string_view op, const std::vector<Literal>& operands,
                                     std::string_view result = "",
                                     std::string_view attributes = "") {
  const std::string shape = operands[0].shape().ToString();
  std::string text = "HloModule m\nENTRY e {\n", names;
  for (size_t i = 0; i < operands.size(); ++i) {
    text += Cat("  x", i, " = ", operands[i].shape().ToString(), " parameter(", i, ")\n");
    names += Cat(i > 0 ? ", x" : "x", i);
  }
  return ir::ParseOrDie(Cat(text, "  ROOT r = ", result.empty() ? shape : result, " ", op, "(",
                            names, ")", attributes, "\n}\n"));
}

struct Case {
  Opcode opcode;
  // Whether C says what sign a zero has.
  bool signed_zeros = true;

  std::string_view op() const { return OpcodeName(opcode); }
};
void PrintTo(const Case& c, std::ostream* to) { *to << c.op(); }
const Case kCases[] = {
    {Opcode::kAcos},
    {Opcode::kAcosh},
    {Opcode::kAsin},
    {Opcode::kAsinh},
    {Opcode::kAtanh},
    {Opcode::kCbrt, false},
    {Opcode::kCosh},
    {Opcode::kCosine},
    {Opcode::kExponential},
    {Opcode::kExponentialMinusOne, false},
    {Opcode::kLog},
    {Opcode::kLogPlusOne, false},
    {Opcode::kLogistic, false},
    {Opcode::kRsqrt},
    {Opcode::kSign, false},
    {Opcode::kSine},
    {Opcode::kSinh},
    {Opcode::kSqrt},
    {Opcode::kTan},
    {Opcode::kTanh},
    {Opcode::kAtan2, false},
    {Opcode::kDivide, false},
    {Opcode::kPower, false},
};

// The error that complex_accuracy.def allows.
template <typename T>
double BoundOf(const Case& c) {
  const ComplexAccuracy* accuracy = ComplexAccuracyOf(c.opcode);
  if (accuracy) return accuracy->Of(kTypeOf<T>);
  ADD_FAILURE() << c.op() << " has no row in complex_accuracy.def";
  return 0;
}

template <typename T>
using Points = std::vector<std::complex<T>>;

// Seeded operands of an op: all kinds, and where C says what comes out infinities and NaNs; powers
// that are not all infinite or 0.
template <typename T>
std::vector<Points<T>> OperandsOf(const Case& c, size_t count, bool with_special, uint64_t seed) {
  ComplexSamples<T> samples(seed);
  const size_t arity = static_cast<size_t>(ArityOf(c.opcode).min);
  std::vector<Points<T>> operands(arity);
  with_special &= c.opcode != Opcode::kPower && c.opcode != Opcode::kAtan2;
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < arity; ++k) {
      std::complex<T> z = with_special && i % 8 == 0 ? samples.NextSpecial() : samples.Next();
      // Of c128 a part may vanish beside one that is 2^1500 times larger, and with it what tells
      // the sides of a cut.
      auto far_apart = [](T x, T y) {
        return x != 0 && std::fabs(x) < std::ldexp(std::fabs(y), -1400);
      };
      while (arity == 2 && (far_apart(z.real(), z.imag()) || far_apart(z.imag(), z.real()))) {
        z = samples.Next();
      }
      if (c.opcode == Opcode::kAtan2 && (k == 1 || i % 2)) {
        const double size = sizeof(T) == 4 ? 60 : 300;
        z = {samples.Sized(-size, size), samples.Sized(-size, size)};
        if (i % 4 == 0 && k == 1) z = 1;
      }
      if (c.opcode == Opcode::kPower) {
        const double size = k == 0 ? 12 : 4;
        z = {samples.Sized(-size, size), samples.Sized(-size, size)};
        if (k == 0 && i % 2) z = {1 + samples.Sized(-12, -1), samples.Sized(-12, -1)};
      }
      operands[k].push_back(z);
    }
  }
  return operands;
}

// What a part counts as at least. The real part of exp(z) - 1 and of the logistic function is 0 on
// curves, next to which it is the difference of two numbers that are as near to each other as
// operands can tell.
template <typename T>
std::array<double, 2> LeastOf(const Case& c, const std::vector<Points<T>>& operands, size_t i,
                              double result) {
  const std::complex<double> z = operands[0][i];
  const double x = z.real(), size = std::fabs(x);
  double terms = 0;
  if (c.opcode == Opcode::kExponentialMinusOne) terms = std::fabs(std::expm1(x));
  if (c.opcode == Opcode::kLogistic && x < 0) {
    const double e = std::exp(-size), cos = std::cos(z.imag() / 2), rest = -std::expm1(-size);
    terms = e * rest / (rest * rest + 4 * e * cos * cos);
  }
  if (c.opcode == Opcode::kPower) {
    const std::complex<double> exponent = std::complex<double>(operands[1][i]) * std::log(z);
    const double least = result * (sizeof(T) == 8 ? 1 + std::abs(exponent) : 1);
    return {least, least};
  }
  // Of angles beyond 2^45 there are no more digits than those of f64.
  if (std::fabs(z.imag()) < 0x1p45) terms /= ComplexAccuracy::TermsOf(kTypeOf<T>);
  return {std::isfinite(terms) ? terms : 0, 0};
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
std::string Show(const std::vector<Points<T>>& operands, size_t i) {
  std::string text;
  for (const Points<T>& operand : operands) text += Cat(text.empty() ? "" : ", ", Show(operand[i]));
  return text;
}

template <typename T>
void Compare(const Case& c, const std::vector<Points<T>>& operands, const Literal& got,
             const Literal& expected) {
  // The evaluator has rounded, too.
  const double bound = std::floor(BoundOf<T>(c) + 0.5);
  int failures = 0;
  for (size_t i = 0; i < operands[0].size() && failures < 5; ++i) {
    const std::complex<T> a = got.values<std::complex<T>>()[i];
    const std::complex<T> e = expected.values<std::complex<T>>()[i];
    const std::array<double, 2> least = LeastOf(c, operands, i, std::abs(e));
    // Beside a NaN, and of functions of one, C says no signs.
    auto has_nan = [](std::complex<T> z) { return std::isnan(z.real()) || std::isnan(z.imag()); };
    const bool no_signs =
        has_nan(e) || std::ranges::any_of(operands, [&](const Points<T>& operand) {
          return has_nan(std::complex<T>(operand[i]));
        });
    auto right = [&](T x, T y, double at_least) {
      if (no_signs) x = std::fabs(x), y = std::fabs(y);
      if (y == 0 && x == 0 && c.signed_zeros) return std::signbit(x) == std::signbit(y);
      return Distance(x, y, at_least) <= bound;
    };
    const bool ok = right(a.real(), e.real(), least[0]) && right(a.imag(), e.imag(), least[1]);
    failures += !ok;
    EXPECT_TRUE(ok) << c.op() << " of " << Show(operands, i) << " is " << Show(a) << "; expected "
                    << Show(e);
  }
}

template <typename T>
std::vector<Literal> ToLiterals(const std::vector<Points<T>>& operands) {
  std::vector<Literal> literals;
  for (const Points<T>& operand : operands) literals.push_back(ToLiteral(operand));
  return literals;
}

template <typename T>
void CheckCase(const Case& c) {
  for (bool on_gpu : {false, true}) {
    const auto operands = OperandsOf<T>(c, on_gpu ? 301 : 2047, true, 5);
    const std::vector<Literal> arguments = ToLiterals(operands);
    auto module = ModuleOf(c.op(), arguments);
    Result<Literal> expected = interp::Evaluate(*module, arguments);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    if (on_gpu) {
      auto loaded = testing::LoadOnGpu(*module, true);
      ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
      Result<Literal> got = testing::RunOnGpu(*loaded, arguments);
      ASSERT_TRUE(got.ok()) << got.status().ToString();
      Compare(c, operands, *got, *expected);
      continue;
    }
    // Narrow vectors have functions of their own.
    for (int vector_bytes : {64, 16}) {
      Result<Literal> got = testing::RunCompiled(*module, arguments, true, vector_bytes);
      ASSERT_TRUE(got.ok()) << got.status().ToString();
      Compare(c, operands, *got, *expected);
    }
  }
}

class ComplexCodeOf : public ::testing::TestWithParam<Case> {};
TEST_P(ComplexCodeOf, C64) { CheckCase<float>(GetParam()); }
TEST_P(ComplexCodeOf, C128) { CheckCase<double>(GetParam()); }

// The true value; nothing where the reference's own numbers are not enough, as at a pole.
template <typename T>
std::optional<BigComplex> TrueValue(const Case& c, const std::vector<Points<T>>& operands,
                                    size_t i) {
  auto big = [&](size_t k) -> BigComplex {
    return {Real(operands[k][i].real()), Real(operands[k][i].imag())};
  };
  Real::Precision() = testing::PrecisionFor(operands[0][i]);
  std::optional<BigComplex> value;
  for (const auto& r : testing::kComplexReferences) {
    if (r.op == c.op()) value = r.value(big(0));
  }
  for (const auto& r : testing::kComplexReferencesOfTwo) {
    if (r.op != c.op()) continue;
    Real::Precision() = std::max(Real::Precision(), testing::PrecisionFor(operands[1][i]));
    value = r.value(big(0), big(1));
  }
  if (value && (!mpfr_number_p(value->re.value) || !mpfr_number_p(value->im.value))) return {};
  return value;
}

template <typename T>
void Measure(const Case& c) {
  const auto operands = OperandsOf<T>(c, 300000, false, 6);
  const std::vector<Literal> arguments = ToLiterals(operands);
  Result<Literal> got = testing::RunCompiled(*ModuleOf(c.op(), arguments), arguments, true);
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  double worst[2] = {0, 0};
  size_t where[2] = {0, 0}, checked = 0;
  for (size_t i = 0; i < operands[0].size(); ++i) {
    const std::optional<BigComplex> e = TrueValue(c, operands, i);
    if (!e) continue;
    ++checked;
    const std::complex<T> value = got->values<std::complex<T>>()[i];
    const double size = mpfr_get_d(Hypot(e->re, e->im).value, MPFR_RNDN);
    const std::array<double, 2> least = LeastOf(c, operands, i, size);
    const double errors[2] = {testing::UlpError(value.real(), e->re, least[0]),
                              testing::UlpError(value.imag(), e->im, least[1])};
    for (int part : {0, 1}) {
      if (errors[part] > worst[part]) worst[part] = errors[part], where[part] = i;
    }
  }
  EXPECT_GT(checked, operands[0].size() / 2);
  for (int part : {0, 1}) {
    EXPECT_LE(worst[part], BoundOf<T>(c))
        << c.op() << (part ? ", imaginary part of " : ", real part of ")
        << Show(operands, where[part]);
  }
  std::printf("| `%s` | %s | %.3f | %.3f |\n", std::string(c.op()).c_str(),
              sizeof(T) == 4 ? "c64" : "c128", worst[0], worst[1]);
}

class ComplexMany : public ::testing::TestWithParam<Case> {};
TEST_P(ComplexMany, C64) { Measure<float>(GetParam()); }
TEST_P(ComplexMany, C128) { Measure<double>(GetParam()); }

auto name_of = [](const auto& info) {
  std::string name(info.param.op());
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
};
INSTANTIATE_TEST_SUITE_P(All, ComplexCodeOf, ::testing::ValuesIn(kCases), name_of);
INSTANTIATE_TEST_SUITE_P(SlowComplex, ComplexMany, ::testing::ValuesIn(kCases), name_of);

// The absolute value, which is real.
template <typename T>
void CheckAbs() {
  ComplexSamples<T> samples(7);
  Points<T> points;
  for (int i = 0; i < 20000; ++i) points.push_back(samples.Next());
  const std::vector<Literal> arguments = {ToLiteral(points)};
  const std::string result = Shape(sizeof(T) == 4 ? ElementType::kF32 : ElementType::kF64,
                                   {static_cast<int64_t>(points.size())})
                                 .ToString();
  Result<Literal> got = testing::RunCompiled(*ModuleOf("abs", arguments, result), arguments, true);
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  double worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    Real::Precision() = testing::PrecisionFor(points[i]);
    const Real e = Hypot(Real(points[i].real()), Real(points[i].imag()));
    const double error = testing::UlpError(got->values<T>()[i], e);
    if (error > worst) worst = error, where = i;
  }
  EXPECT_LE(worst, BoundOf<T>({Opcode::kAbs})) << Show(points[where]);
}

TEST(ComplexCode, AbsoluteValues) {
  CheckAbs<float>();
  CheckAbs<double>();
}

// Whatever the table lets through there is code for, and it gives what the evaluator does.
TEST(ComplexCode, EveryElementwiseOp) {
  for (ElementType type : {ElementType::kC64, ElementType::kC128}) {
    for (int n = 0; n < kOpcodeCount; ++n) {
      const OpInfo& info = InfoOf(static_cast<Opcode>(n));
      if (!(info.types & kComplexType) || !IsElementwise(info.opcode)) continue;
      const Shape shape(type, {5});
      std::vector<Literal> operands;
      for (int64_t k = 0; k < ArityOf(info.opcode).min; ++k) {
        operands.push_back(SampleLiteral(shape, static_cast<uint64_t>(n * 3 + k)));
      }
      std::string result = shape.ToString(), attributes;
      const std::string real = type == ElementType::kC64 ? "f32[5]" : "f64[5]";
      switch (info.opcode) {
        case Opcode::kSelect:
          operands[0] = SampleLiteral(Shape(ElementType::kPred, {5}), 1);
          break;
        case Opcode::kCompare:
          result = "pred[5]", attributes = ", direction=NE";
          break;
        case Opcode::kAbs:
        case Opcode::kReal:
        case Opcode::kImag:
          result = real;
          break;
        default:
          break;
      }
      auto module = ModuleOf(info.name, operands, result, attributes);
      Result<Literal> expected = interp::Evaluate(*module, operands);
      ASSERT_TRUE(expected.ok()) << info.name << ": " << expected.status().ToString();
      Result<Literal> got = testing::RunCompiled(*module, operands, true);
      ASSERT_TRUE(got.ok()) << info.name << ": " << got.status().ToString();
      EXPECT_EQ(testing::Difference(*expected, *got, 1e-5, 1e-5), "") << info.name;
    }
  }
}

TEST(ComplexCode, OrderIsThatOfTheEvaluator) {
  ComplexSamples<float> samples(8);
  Points<float> x, y, z;
  for (int i = 0; i < 1000; ++i) {
    for (Points<float>* p : {&x, &y, &z}) p->push_back(samples.NextSpecial());
  }
  const std::vector<Literal> operands = {ToLiteral(x), ToLiteral(y), ToLiteral(z)};
  for (std::string_view op : {"maximum", "minimum", "clamp"}) {
    std::vector<Literal> used(operands.begin(), operands.begin() + (op == "clamp" ? 3 : 2));
    auto module = ModuleOf(op, used);
    Result<Literal> expected = interp::Evaluate(*module, used);
    Result<Literal> got = testing::RunCompiled(*module, used, true);
    ASSERT_TRUE(expected.ok() && got.ok()) << op << got.status().ToString();
    EXPECT_EQ(testing::Difference(*expected, *got, 0, 0), "") << op;
  }
  // Bounds may be scalars.
  auto module = ir::ParseOrDie(
      R"(HloModule m
ENTRY e {
  l = c64[] constant((-1, 2))
  h = c64[] constant((1, -1))
  x = c64[1000] parameter(0)
  ROOT r = c64[1000] clamp(l, x, h)
}
)");
  const std::vector<Literal> first = {operands[0]};
  Result<Literal> expected = interp::Evaluate(*module, first);
  Result<Literal> got = testing::RunCompiled(*module, first, true);
  ASSERT_TRUE(expected.ok() && got.ok()) << got.status().ToString();
  EXPECT_EQ(testing::Difference(*expected, *got, 0, 0), "");
}

KILN_LABEL(slow, "SlowComplex/ComplexMany");

}  // namespace
}  // namespace kiln

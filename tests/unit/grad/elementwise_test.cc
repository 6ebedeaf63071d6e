// Derivatives of every elementwise op: at ordinary points, at special ones, in all types.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <random>
#include <set>

#include "grad/derivative.h"
#include "ir/builder.h"
#include "support/grad_check.h"
#include "support/hlo.h"
#include "unit/grad/check.h"

namespace kiln::grad {
namespace {

using ir::Instruction;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kPi = std::numbers::pi;

// Where an op has derivatives: points, with a number for each operand. Those of complex functions
// are turned by an angle.
struct Points {
  Opcode opcode;
  std::vector<std::vector<double>> operands;
  std::vector<std::vector<double>> complex = {};  // instead of these
};

const std::vector<Points>& AllPoints() {
  static const std::vector<double> kAny = {-2.25, -0.75, 0.5, 1.5};
  static const std::vector<double> kOther = {0.75, 1.25, -1.75, 2.5};
  static const std::vector<double> kInner = {-0.75, -0.25, 0.125, 0.625};
  static const std::vector<double> kPositive = {0.25, 0.75, 1.5, 3};
  static const std::vector<double> kAboveOne = {1.25, 1.75, 2.5, 4};
  static const std::vector<Points> kAll = {
      {Opcode::kAbs, {kAny}},
      {Opcode::kAcos, {kInner}},
      {Opcode::kAcosh, {kAboveOne}},
      {Opcode::kAsin, {kInner}},
      {Opcode::kAsinh, {kAny}},
      {Opcode::kAtanh, {kInner}},
      {Opcode::kCbrt, {kAny}, {kPositive}},
      {Opcode::kConvert, {kAny}},
      {Opcode::kCopy, {kAny}},
      {Opcode::kCosh, {kAny}},
      {Opcode::kCosine, {kAny}},
      {Opcode::kErf, {kAny}},
      {Opcode::kExponential, {kAny}},
      {Opcode::kExponentialMinusOne, {kAny}},
      {Opcode::kImag, {kAny}},
      {Opcode::kLog, {kPositive}},
      {Opcode::kLogPlusOne, {kPositive}},
      {Opcode::kLogistic, {kAny}},
      {Opcode::kNegate, {kAny}},
      {Opcode::kReal, {kAny}},
      {Opcode::kReducePrecision, {kAny}},
      {Opcode::kRsqrt, {kPositive}},
      {Opcode::kSign, {kAny}},
      {Opcode::kSine, {kAny}},
      {Opcode::kSinh, {kAny}},
      {Opcode::kSqrt, {kPositive}},
      {Opcode::kTan, {kInner}},
      {Opcode::kTanh, {kAny}, {kInner}},
      {Opcode::kAdd, {kAny, kOther}},
      {Opcode::kAtan2, {kAny, kOther}, {kInner, kAboveOne}},
      {Opcode::kComplex, {kAny, kOther}},
      {Opcode::kDivide, {kAny, kOther}},
      {Opcode::kMaximum, {kAny, kOther}},
      {Opcode::kMinimum, {kAny, kOther}},
      {Opcode::kMultiply, {kAny, kOther}},
      {Opcode::kPower, {kPositive, kOther}},
      {Opcode::kRemainder, {kAny, {1.25, 0.5, -1.75, 0.625}}},
      {Opcode::kSubtract, {kAny, kOther}},
      {Opcode::kClamp, {{-2, -0.5, 0, 0.25}, {-1, -1, 1, 0.75}, {-0.75, 2, 0.5, 3}}},
      {Opcode::kSelect, {kAny, kOther}},
      {Opcode::kBesselI1e, {{-20, -11.5, -3, -0.25, 1e-3, 1.5, 7, 12.5}}},
      {Opcode::kDigamma, {{-1.25, 0.75, 1.5, 3}}},
      {Opcode::kErfInv, {kInner}},
      {Opcode::kErfc, {kAny}},
      {Opcode::kHypot, {kAny, kOther}},
      {Opcode::kLgamma, {{-1.25, 0.75, 1.5, 3}}},
      {Opcode::kMultiplyNoNan, {kAny, kOther}},
      {Opcode::kPolygamma, {{0, 1, 2, 3}, kPositive}},
      {Opcode::kZeta, {{1.5, 2, 3, 4}, kPositive}},
  };
  return kAll;
}

// The derivative by the first operand is 0 or missing.
bool HasOrder(Opcode opcode) { return opcode == Opcode::kPolygamma || opcode == Opcode::kZeta; }

// The op of parameters of a type; an order is a constant.
std::unique_ptr<ir::Module> ModuleOf(const Points& points, ElementType type,
                                     const std::vector<std::vector<double>>& operands) {
  auto module = std::make_unique<ir::Module>("elementwise");
  ir::Computation* entry = module->AddComputation("entry");
  module->set_entry(entry);
  ir::Builder b(entry);
  const Shape shape(type, {std::ssize(operands[0])});
  std::vector<Instruction*> values;
  for (const std::vector<double>& numbers : operands) {
    if (!HasOrder(points.opcode) || !values.empty()) {
      values.push_back(b.Parameter(shape));
      continue;
    }
    std::vector<Instruction*> orders;
    for (double number : numbers) orders.push_back(b.Number(Shape(type, {1}), number));
    values.push_back(b.Concatenate(orders, 0));
  }
  Attributes attributes;
  std::optional<Shape> declared;
  if (points.opcode == Opcode::kReducePrecision) {
    attributes = {{Attr::kExponentBits, int64_t{11}}, {Attr::kMantissaBits, int64_t{52}}};
  } else if (points.opcode == Opcode::kConvert) {
    declared = Shape::Scalar(type);
  } else if (points.opcode == Opcode::kSelect) {
    values.insert(values.begin(), b.Compare(Direction::kLt, b.Unary(Opcode::kReal, values[0]),
                                            b.Unary(Opcode::kReal, values[1])));
  }
  entry->set_root(b.Add(points.opcode, std::move(values), std::move(attributes), declared));
  EXPECT_TRUE(b.ok()) << b.status().ToString();
  return module;
}

// Numbers in a type; complex ones are turned.
Literal Numbers(ElementType type, const std::vector<double>& numbers) {
  const bool is_complex = IsComplex(type);
  Literal literal(Shape(type, {std::ssize(numbers)}));
  for (size_t k = 0; k < numbers.size(); ++k) {
    if (is_complex) {
      literal.values<double>()[2 * k] = numbers[k] * std::cos(0.5);
      literal.values<double>()[2 * k + 1] = numbers[k] * std::sin(0.5);
      continue;
    }
    const Literal number = Literal::ScalarOf(type, numbers[k]);
    std::memcpy(literal.data() + static_cast<int64_t>(k) * number.byte_size(), number.data(),
                static_cast<size_t>(number.byte_size()));
  }
  return literal;
}

std::vector<Literal> Arguments(const Points& points, ElementType type,
                               const std::vector<std::vector<double>>& operands) {
  std::vector<Literal> arguments;
  for (size_t k = HasOrder(points.opcode) ? 1 : 0; k < operands.size(); ++k) {
    arguments.push_back(Numbers(type, operands[k]));
  }
  return arguments;
}

bool Takes(Opcode opcode, ElementType type) {
  return InfoOf(opcode).types & (IsComplex(type) ? kComplexType : kFloatType);
}

TEST(GradElementwise, EveryOpHasPoints) {
  std::set<Opcode> has;
  for (const Points& points : AllPoints()) has.insert(points.opcode);
  for (int k = 0; k < kOpcodeCount; ++k) {
    const auto opcode = static_cast<Opcode>(k);
    if (!HasTrait(opcode, kElementwise) || InfoOf(opcode).gradient.rules == 0) continue;
    EXPECT_TRUE(has.contains(opcode)) << OpcodeName(opcode);
  }
}

TEST(GradElementwise, FirstAndSecondDerivatives) {
  for (const Points& points : AllPoints()) {
    for (ElementType type : {ElementType::kF64, ElementType::kC128}) {
      if (!Takes(points.opcode, type)) continue;
      const auto& operands =
          IsComplex(type) && !points.complex.empty() ? points.complex : points.operands;
      testing::DerivativeCounts counts;
      EXPECT_EQ(testing::CheckDerivatives(*ModuleOf(points, type, operands),
                                          Arguments(points, type, operands), {.tolerance = 1e-6},
                                          &counts),
                "")
          << OpcodeName(points.opcode) << " of " << TypeName(type);
      EXPECT_GT(counts.compared, 0) << OpcodeName(points.opcode);
    }
  }
}

// In a type, by cotangents of 1.
std::vector<Literal> GradientsIn(ElementType type, const Points& points,
                                 std::vector<Literal> arguments) {
  auto gradients = testing::CotangentModule(*ModuleOf(points, type, points.operands));
  EXPECT_TRUE(gradients.ok()) << gradients.status().ToString();
  if (!gradients.ok()) return {};
  arguments.push_back(Numbers(type, std::vector<double>(points.operands[0].size(), 1)));
  return *testing::ResultsOf(**gradients, arguments);
}

// The gradients in a type are those in f64 of the numbers as they are in that type; types of 8 bits
// and fewer have too few digits to tell.
TEST(GradElementwise, AllTypes) {
  for (const Points& points : AllPoints()) {
    if (!Takes(points.opcode, ElementType::kF64) || points.opcode == Opcode::kComplex) continue;
    for (ElementType type :
         {ElementType::kF32, ElementType::kBF16, ElementType::kF16, ElementType::kF8E5M2,
          ElementType::kF8E4M3FN, ElementType::kF8E4M3, ElementType::kF8E3M4,
          ElementType::kF8E4M3B11FNUZ, ElementType::kF8E5M2FNUZ, ElementType::kF8E4M3FNUZ,
          ElementType::kF6E2M3FN, ElementType::kF6E3M2FN, ElementType::kF4E2M1FN}) {
      SCOPED_TRACE(Cat(OpcodeName(points.opcode), " of ", TypeName(type)));
      const std::vector<Literal> arguments = Arguments(points, type, points.operands);
      const std::vector<Literal> got = GradientsIn(type, points, arguments);
      if (ByteWidth(type) < 2) continue;
      std::vector<Literal> exact;
      for (const Literal& x : arguments) {
        std::vector<double> values;
        for (int64_t k = 0; k < x.shape().num_elements(); ++k) values.push_back(x.AsDouble(k));
        exact.push_back(Numbers(ElementType::kF64, values));
      }
      const std::vector<Literal> expected = GradientsIn(ElementType::kF64, points, exact);
      ASSERT_EQ(got.size(), expected.size());
      const double epsilon = std::ldexp(1, -FormatOf(type)->mantissa);
      for (size_t k = 0; k < expected.size(); ++k) {
        for (int64_t i = 0; i < expected[k].shape().num_elements(); ++i) {
          const double number = expected[k].AsDouble(i);
          EXPECT_NEAR(got[k].AsDouble(i), number, 8 * epsilon * std::max(1.0, std::abs(number)))
              << "element " << i << " by operand " << k;
        }
      }
    }
  }
}

// Gradients at points where formulas have no value, or functions a kink.
struct Special {
  Opcode opcode;
  std::vector<double> operands, gradients;
};

const Special kSpecial[] = {
    {Opcode::kAbs, {0}, {0}},
    {Opcode::kAbs, {-kInf}, {-1}},
    {Opcode::kSign, {0}, {0}},
    {Opcode::kAcos, {1}, {-kInf}},
    {Opcode::kAsin, {-1}, {kInf}},
    {Opcode::kAcosh, {1}, {kInf}},
    {Opcode::kAsinh, {1e200}, {0}},
    {Opcode::kAtanh, {1}, {kInf}},
    {Opcode::kCbrt, {0}, {kInf}},
    {Opcode::kSqrt, {0}, {kInf}},
    {Opcode::kSqrt, {kInf}, {0}},
    {Opcode::kRsqrt, {0}, {-kInf}},
    {Opcode::kRsqrt, {kInf}, {0}},
    {Opcode::kLog, {0}, {kInf}},
    {Opcode::kLog, {kInf}, {0}},
    {Opcode::kLogPlusOne, {-1}, {kInf}},
    {Opcode::kLogPlusOne, {0}, {1}},
    {Opcode::kExponential, {-kInf}, {0}},
    {Opcode::kExponential, {800}, {kInf}},
    {Opcode::kExponentialMinusOne, {-kInf}, {0}},
    {Opcode::kLogistic, {-800}, {0}},
    {Opcode::kLogistic, {kInf}, {0}},
    {Opcode::kTanh, {kInf}, {0}},
    {Opcode::kTanh, {-40}, {0}},
    {Opcode::kErf, {kInf}, {0}},
    {Opcode::kErfc, {-kInf}, {0}},
    {Opcode::kErfInv, {1}, {kInf}},
    {Opcode::kErfInv, {0}, {std::sqrt(kPi) / 2}},
    {Opcode::kSine, {0}, {1}},
    {Opcode::kCosine, {0}, {0}},
    {Opcode::kBesselI1e, {0}, {0.5}},
    {Opcode::kBesselI1e, {1e-300}, {0.5}},
    {Opcode::kBesselI1e, {-1e-9}, {0.5 - 1e-9}},
    {Opcode::kBesselI1e, {kInf}, {0}},
    {Opcode::kLgamma, {kInf}, {kInf}},
    {Opcode::kDigamma, {0}, {kInf}},
    {Opcode::kMaximum, {2, 2}, {0.5, 0.5}},
    {Opcode::kMinimum, {0, -0.0}, {0.5, 0.5}},
    {Opcode::kMaximum, {kInf, 0}, {1, 0}},
    {Opcode::kMultiply, {0, 3}, {3, 0}},
    {Opcode::kMultiplyNoNan, {0, 3}, {3, 0}},
    {Opcode::kDivide, {1, kInf}, {0, 0}},
    {Opcode::kDivide, {1e300, 1e200}, {1e-200, -1e-100}},
    {Opcode::kPower, {0, 2}, {0, 0}},
    {Opcode::kPower, {0, 1}, {1, 0}},
    {Opcode::kPower, {0, 0}, {0, 0}},
    {Opcode::kPower, {0, 0.5}, {kInf, 0}},
    {Opcode::kPower, {3, 0}, {0, std::log(3.0)}},
    {Opcode::kHypot, {0, 0}, {0, 0}},
    {Opcode::kHypot, {3e200, 4e200}, {0.6, 0.8}},
    {Opcode::kHypot, {3e-200, 4e-200}, {0.6, 0.8}},
    {Opcode::kAtan2, {0, 2}, {0.5, 0}},
    {Opcode::kAtan2, {3e200, 4e200}, {1.6e-201, -1.2e-201}},
    {Opcode::kAtan2, {3e-200, 4e-200}, {1.6e199, -1.2e199}},
    {Opcode::kRemainder, {7, 2}, {1, -3}},
    {Opcode::kRemainder, {-7, 2}, {1, 3}},
    {Opcode::kClamp, {0, 0, 1}, {0, 0, 0}},
    {Opcode::kClamp, {0, 2, 1}, {0, 0, 1}},
    {Opcode::kClamp, {0, -2, 1}, {1, 0, 0}},
};

TEST(GradElementwise, SpecialPoints) {
  for (const Special& special : kSpecial) {
    std::vector<std::vector<double>> operands;
    for (double x : special.operands) operands.push_back({x});
    const Points points = {special.opcode, operands};
    const auto module = ModuleOf(points, ElementType::kF64, operands);
    const auto arguments = Arguments(points, ElementType::kF64, operands);
    const std::vector<Literal> gradients = GradientsAt(*module, arguments);
    ASSERT_EQ(gradients.size(), special.gradients.size());
    for (size_t k = 0; k < gradients.size(); ++k) {
      EXPECT_DOUBLE_EQ(gradients[k].AsDouble(0), special.gradients[k])
          << OpcodeName(special.opcode) << " at " << special.operands[0] << " by operand " << k;
    }
  }
}

// On both sides of the place where the formula changes, by the series in extended precision:
//   e^-x (I_1'(x) - I_1(x)), I_1(x) = sum over k of (x / 2)^(2k + 1) / (k! (k + 1)!)
TEST(GradElementwise, BesselNextToItsParts) {
  for (double x : {0.1, 1.5, 8.0, 11.999999, 12.0, 12.000001, 30.0}) {
    long double sum = 0, term = 0.5L;
    for (int k = 1; k < 120; ++k) {
      sum += term * (2 * k - 1 - x);
      term *= static_cast<long double>(x) * x / (4.0L * k * (k + 1));
    }
    const auto expected = static_cast<double>(sum * std::exp(-static_cast<long double>(x)));
    const Points points = {Opcode::kBesselI1e, {{x}}};
    const auto module = ModuleOf(points, ElementType::kF64, points.operands);
    EXPECT_NEAR(GradientsAt(*module, {Doubles({1}, {x})}).at(0).AsDouble(0), expected,
                1e-15 + 5e-15 * std::abs(expected))
        << x;
  }
}

// What a select masks stays out, where its derivative is not finite either.
TEST(GradElementwise, MaskedBranches) {
  const std::string_view kInner[] = {
      "r = f64[4] sqrt(x)",
      "r = f64[4] log(x)",
      "r = f64[4] rsqrt(x)",
      "r = f64[4] divide(one, x)",
      "l = f64[4] log(x)\n r = f64[4] multiply(x, l)",
      "l = f64[4] rsqrt(x)\n m = f64[4] multiply(x, l)\n r = f64[4] sine(m)",
      "h = f64[4] divide(one, x)\n r = f64[4] cosine(h)",
      "h = f64[4] divide(one, x)\n g = f64[4] multiply(h, h)\n r = f64[4] exponential(g)",
      "r = f64[4] power(x, one)",
      "h = f64[4] divide(x, x)\n t = f64[4] transpose(h), dimensions={0}\n r = f64[4] multiply(t, "
      "x)",
  };
  for (std::string_view inner : kInner) {
    const std::string lines = Cat(R"(
  x = f64[4] parameter(0)
  zero = f64[4] constant({0, 0, 0, 0})
  one = f64[4] constant({1, 1, 1, 1})
  )",
                                  inner, R"(
  p = pred[4] compare(x, zero), direction=GT
  ROOT s = f64[4] select(p, r, zero))");
    const auto gradients = GradientsAt(lines, {Doubles({4}, {0, 0.0, 4, -0.0})});
    ASSERT_EQ(gradients.size(), 1u);
    for (int64_t i : {0, 1, 3}) EXPECT_EQ(gradients[0].AsDouble(i), 0) << inner;
    EXPECT_TRUE(std::isfinite(gradients[0].AsDouble(2))) << inner;
  }
}

// Missing data as NaNs that are masked: the parameters' gradients are numbers.
TEST(GradElementwise, MaskedData) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto gradients = GradientsAt(R"(
  w = f64[] parameter(0)
  x = f64[3] parameter(1)
  zero = f64[] constant(0)
  zeros = f64[3] broadcast(zero), dimensions={}
  ws = f64[3] broadcast(w), dimensions={}
  y = f64[3] multiply(ws, x)
  p = pred[3] compare(x, x), direction=EQ
  s = f64[3] select(p, y, zeros)
  ROOT r = f64[] reduce(s, zero), dimensions={0}, to_apply=add)",
                                     {Doubles({}, {3}), Doubles({3}, {1, nan, 5})});
  EXPECT_EQ(gradients.at(0).AsDouble(0), 6);
}

TEST(GradElementwise, NormsAtZero) {
  const std::string_view kSquares[] = {
      "s = f64[3] multiply(x, x)\n n = f64[] reduce(s, zero), dimensions={0}, to_apply=add",
      "s = f64[3] power(x, two)\n n = f64[] reduce(s, zero), dimensions={0}, to_apply=add",
      "n = f64[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
      "s = f64[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
      "n = f64[] divide(s, three)",
      "s = f64[3] multiply(x, x)\n q = f64[] reduce(s, zero), dimensions={0}, to_apply=add\n"
      "n = f64[] multiply(three, q)",
  };
  for (std::string_view squares : kSquares) {
    const auto gradients = GradientsAt(Cat(R"(
  x = f64[3] parameter(0)
  two = f64[3] constant({2, 2, 2})
  three = f64[] constant(3)
  zero = f64[] constant(0)
  )",
                                           squares, "\n  ROOT r = f64[] sqrt(n)"),
                                       {Doubles({3}, {0, 0, 0})});
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(gradients.at(0).AsDouble(i), 0) << squares;
  }
}

// A search that goes both ways at each sum ends.
TEST(GradElementwise, RootOfManySums) {
  std::string lines = "x = f64[] parameter(0)\ny0 = f64[] multiply(x, x)\n";
  for (int k = 0; k < 64; ++k) {
    lines += Cat("z", k, " = f64[] transpose(y", k, "), dimensions={}\ny", k + 1, " = f64[] add(y",
                 k, ", z", k, ")\n");
  }
  const auto gradients = GradientsAt(Cat(lines, "ROOT r = f64[] sqrt(y64)"), {Doubles({}, {2})});
  EXPECT_EQ(gradients.at(0).AsDouble(0), 0x1p32);
}

TEST(GradElementwise, LogSoftmaxOfLargeNumbers) {
  const auto gradients = GradientsAt(R"(
  x = f64[3] parameter(0)
  low = f64[] constant(-inf)
  zero = f64[] constant(0)
  m = f64[] reduce(x, low), dimensions={0}, to_apply=max
  ms = f64[3] broadcast(m), dimensions={}
  c = f64[3] subtract(x, ms)
  e = f64[3] exponential(c)
  s = f64[] reduce(e, zero), dimensions={0}, to_apply=add
  l = f64[] log(s)
  ls = f64[3] broadcast(l), dimensions={}
  y = f64[3] subtract(c, ls)
  k = f64[3] constant({1, 0, 0})
  ROOT r = f64[] dot(y, k), lhs_contracting_dims={0}, rhs_contracting_dims={0})",
                                     {Doubles({3}, {1000, 1000, -1e308})});
  EXPECT_DOUBLE_EQ(gradients.at(0).AsDouble(0), 0.5);
  EXPECT_DOUBLE_EQ(gradients.at(0).AsDouble(1), -0.5);
  EXPECT_DOUBLE_EQ(gradients.at(0).AsDouble(2), 0);
}

}  // namespace
}  // namespace kiln::grad

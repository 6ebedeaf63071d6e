// Complex numbers in the evaluator: functions over the plane against MPFR, special values, and the
// ops that hold them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include "support/complex_reference.h"
#include "support/complex_samples.h"
#include "support/complex_values.h"
#include "support/interp.h"

namespace kiln {
namespace {

using testing::Apply;
using testing::BigComplex;
using testing::Eval;
using testing::Real;
using testing::UlpError;
using testing::ValueOf;

template <typename T>
constexpr ElementType kTypeOf = sizeof(T) == 4 ? ElementType::kC64 : ElementType::kC128;

template <typename T>
Literal ToLiteral(const std::vector<std::complex<T>>& values) {
  return Literal::Array<std::complex<T>>(Shape(kTypeOf<T>, {static_cast<int64_t>(values.size())}),
                                         values);
}

// Both parts within this many units of the last place.
constexpr double kBound = 1;

template <typename T>
void CheckFunctions() {
  testing::ComplexSamples<T> samples(1);
  std::vector<std::complex<T>> grid;
  for (int i = 0; i < 4000; ++i) grid.push_back(samples.Next());
  for (const testing::ComplexReference& f : testing::kComplexReferences) {
    Literal result = testing::Evaluate(f.op, {ToLiteral(grid)}, kTypeOf<T>);
    double worst = 0;
    std::complex<T> where;
    size_t checked = 0;
    for (size_t i = 0; i < grid.size(); ++i) {
      Real::Precision() = testing::PrecisionFor(grid[i]);
      const BigComplex expected = f.value({Real(grid[i].real()), Real(grid[i].imag())});
      // Where the formula itself leaves the range of MPFR, or is of no use at a pole.
      if (mpfr_nan_p(expected.re.value) || mpfr_nan_p(expected.im.value)) continue;
      const std::complex<T> got = result.values<std::complex<T>>()[i];
      const double error =
          std::max(UlpError(got.real(), expected.re), UlpError(got.imag(), expected.im));
      ++checked;
      if (error > worst) {
        worst = error;
        where = grid[i];
      }
    }
    EXPECT_LE(worst, kBound) << f.op << " of (" << where.real() << ", " << where.imag() << ")";
    EXPECT_GT(5 * checked, 4 * grid.size()) << f.op;
  }
}

// The reference is not so by its own word alone.
TEST(InterpComplex, FunctionsAtHardPoints) {
  for (const testing::ComplexValue& v : testing::kComplexValues) {
    Literal result = testing::Evaluate(
        v.op, {ToLiteral(std::vector<std::complex<double>>{{v.x, v.y}})}, ElementType::kC128);
    const std::complex<double> got = result.values<std::complex<double>>()[0];
    // A unit where the wider type's rounding fell to the other side of a tie.
    EXPECT_LE(UlpError(got.real(), Real(v.real)), kBound) << v.op << " of " << v.x << ", " << v.y;
    EXPECT_LE(UlpError(got.imag(), Real(v.imag)), kBound) << v.op << " of " << v.x << ", " << v.y;
    Real::Precision() = 3000;
    for (const testing::ComplexReference& f : testing::kComplexReferences) {
      if (std::string_view(f.op) != v.op) continue;
      const BigComplex value = f.value({Real(v.x), Real(v.y)});
      EXPECT_EQ(mpfr_get_d(value.re.value, MPFR_RNDN), v.real) << v.op << " of " << v.x;
      EXPECT_EQ(mpfr_get_d(value.im.value, MPFR_RNDN), v.imag) << v.op << " of " << v.x;
    }
  }
}

TEST(InterpComplex, FunctionsOfC64) { CheckFunctions<float>(); }
TEST(InterpComplex, FunctionsOfC128) { CheckFunctions<double>(); }

template <typename T>
void CheckBinaryFunctions(double scale) {
  Real::Precision() = 1024;
  testing::ComplexSamples<T> samples(2);
  std::vector<std::complex<T>> xs, ys;
  auto number = [&](double size) -> std::complex<T> {
    return {samples.Sized(-size, size), samples.Sized(-size, size)};
  };
  for (int i = 0; i < 2000; ++i) {
    xs.push_back(number(scale));
    // Also such as make powers of moderate size, by large angles.
    ys.push_back(number(i % 2 ? 2 : scale));
    if (i % 4 == 0) xs.back() = {1 + samples.Sized(-20, -12), samples.Sized(-20, -12)};
  }
  for (const testing::ComplexReferenceOfTwo& f : testing::kComplexReferencesOfTwo) {
    Literal result = testing::Evaluate(f.op, {ToLiteral(xs), ToLiteral(ys)}, kTypeOf<T>);
    double worst = 0;
    size_t where = 0;
    for (size_t i = 0; i < xs.size(); ++i) {
      const BigComplex expected = f.value({Real(xs[i].real()), Real(xs[i].imag())},
                                          {Real(ys[i].real()), Real(ys[i].imag())});
      if (mpfr_nan_p(expected.re.value) || mpfr_nan_p(expected.im.value)) continue;
      const std::complex<T> got = result.values<std::complex<T>>()[i];
      const double error =
          std::max(UlpError(got.real(), expected.re), UlpError(got.imag(), expected.im));
      if (error > worst) worst = error, where = i;
    }
    EXPECT_LE(worst, kBound) << f.op << " of " << xs[where] << " and " << ys[where];
  }
}

TEST(InterpComplex, BinaryFunctions) {
  CheckBinaryFunctions<float>(12);
  CheckBinaryFunctions<double>(16);
}

TEST(InterpComplex, AbsIsRealAndDoesNotOverflow) {
  EXPECT_EQ(Apply("abs", "c64[4]", {"{(3, -4), (2e38, 2e38), (1e-45, 0), (-inf, nan)}"}, "f32[4]"),
            "{5, 2.828427e+38, 1e-45, inf}");
  EXPECT_EQ(Apply("abs", "c128[2]", {"{(1e308, 1e308), (0, -0)}"}, "f64[2]"),
            "{1.4142135623730951e+308, 0}");
  EXPECT_EQ(Apply("divide", "c128[2]",
                  {"{(1e308, 1e308), (1e-300, 1e-300)}", "{(1e308, 1e308), (1e-300, -1e-300)}"}),
            "{(1, 0), (0, 1)}");
}

TEST(InterpComplex, SpecialValues) {
  auto of = [](std::string_view op, std::string_view z) { return Apply(op, "c64[]", {z}); };
  // Where both parts are unbounded there is no angle; a real number stays one.
  EXPECT_EQ(of("exponential", "(inf, inf)"), "(-nan, -nan)");
  EXPECT_EQ(of("exponential", "(-inf, nan)"), "(nan, nan)");
  EXPECT_EQ(of("exponential", "(inf, 0)"), "(inf, 0)");
  EXPECT_EQ(of("exponential", "(-inf, 1)"), "(0, 0)");
  EXPECT_EQ(of("exponential", "(nan, 0)"), "(nan, 0)");
  EXPECT_EQ(of("exponential-minus-one", "(-inf, 2)"), "(-1, 0)");
  // C's Annex G.
  EXPECT_EQ(of("log", "(0, 0)"), "(-inf, 0)");
  EXPECT_EQ(of("log", "(-0, 0)"), "(-inf, 3.1415927)");
  EXPECT_EQ(of("log", "(-1, -0)"), "(0, -3.1415927)");
  EXPECT_EQ(of("log", "(-inf, inf)"), "(inf, 2.3561945)");
  EXPECT_EQ(of("log-plus-one", "(-inf, -inf)"), "(inf, -2.3561945)");
  EXPECT_EQ(of("log-plus-one", "(-1, 0)"), "(-inf, 0)");
  EXPECT_EQ(of("sqrt", "(-4, 0)"), "(0, 2)");
  EXPECT_EQ(of("sqrt", "(-4, -0)"), "(0, -2)");
  EXPECT_EQ(of("sqrt", "(nan, inf)"), "(inf, inf)");
  EXPECT_EQ(of("tanh", "(inf, 1)"), "(1, 0)");
  EXPECT_EQ(of("asin", "(2, 0)"), "(1.5707964, 1.316958)");
  EXPECT_EQ(of("asin", "(2, -0)"), "(1.5707964, -1.316958)");
  EXPECT_EQ(of("acosh", "(0, 0)"), "(0, 1.5707964)");
  EXPECT_EQ(of("atanh", "(1, 0)"), "(inf, 0)");
  EXPECT_EQ(of("sign", "(-0, 0)"), "(0, 0)");
  EXPECT_EQ(of("sign", "(nan, 1)"), "(nan, nan)");
  EXPECT_EQ(of("rsqrt", "(0, 0)"), "(inf, nan)");
  EXPECT_EQ(of("rsqrt", "(4, 0)"), "(0.5, -0)");
  EXPECT_EQ(of("rsqrt", "(nan, -inf)"), "(0, 0)");
  EXPECT_EQ(of("cbrt", "(-8, 0)"), "(1, 1.7320508)");
  EXPECT_EQ(of("cbrt", "(0, 0)"), "(0, 0)");
  EXPECT_EQ(of("logistic", "(-1000, 1)"), "(0, 0)");
  EXPECT_EQ(of("negate", "(1, -0)"), "(-1, 0)");
  auto both = [](std::string_view op, std::string_view x, std::string_view y) {
    return Apply(op, "c64[]", {x, y});
  };
  EXPECT_EQ(both("divide", "(1, 0)", "(inf, nan)"), "(0, 0)");
  EXPECT_EQ(both("divide", "(inf, 1)", "(1, 1)"), "(inf, -inf)");
  EXPECT_EQ(both("divide", "(-1, 2)", "(0, 0)"), "(-inf, inf)");
  EXPECT_EQ(both("multiply", "(inf, 0)", "(0, 1)"), "(-nan, inf)");
  EXPECT_EQ(both("multiply", "(0, 0)", "(-1, 0)"), "(-0, 0)");
  EXPECT_EQ(both("power", "(0, 0)", "(0, 0)"), "(1, 0)");
  EXPECT_EQ(both("power", "(0, 0)", "(2, 0)"), "(0, 0)");
  EXPECT_EQ(both("power", "(nan, 1)", "(0, 0)"), "(1, 0)");
  EXPECT_EQ(both("power", "(2, 0)", "(3, 0)"), "(8, 0)");
  EXPECT_EQ(both("atan2", "(1, 0)", "(-1, 0)"), "(2.3561945, -0)");
}

TEST(InterpComplex, PartsAndOrder) {
  EXPECT_EQ(Apply("complex", "f32[2]", {"{1, nan}", "{-0, 2}"}, "c64[2]"), "{(1, -0), (nan, 2)}");
  EXPECT_EQ(Apply("complex", "f64[]", {"1", "2"}, "c128[]"), "(1, 2)");
  EXPECT_EQ(Apply("real", "c128[2]", {"{(1, 2), (nan, 3)}"}, "f64[2]"), "{1, nan}");
  EXPECT_EQ(Apply("imag", "c64[2]", {"{(1, 2), (nan, -0)}"}, "f32[2]"), "{2, -0}");
  const std::string_view x = "{(nan, 0), (-0, 0), (2, 2), (1, 2)}";
  const std::string_view y = "{(nan, 0), (0, -0), (2, 1), (1, 2)}";
  EXPECT_EQ(Apply("compare", "c64[4]", {x, y}, "pred[4]", "direction=EQ"), "{0, 1, 0, 1}");
  EXPECT_EQ(Apply("compare", "c64[4]", {x, y}, "pred[4]", "direction=NE"), "{1, 0, 1, 0}");
  EXPECT_EQ(Apply("maximum", "c64[3]", {"{(1, 9), (1, 2), (0, 1.5)}", "{(2, 0), (1, 3), (-0, 2)}"}),
            "{(2, 0), (1, 3), (-0, 2)}");
  EXPECT_EQ(Apply("minimum", "c64[3]", {"{(1, 9), (1, 2), (0, 1.5)}", "{(2, 0), (1, 3), (-0, 2)}"}),
            "{(1, 9), (1, 2), (0, 1.5)}");
  EXPECT_EQ(Apply("clamp", "c64[2]", {"{(0, 0), (0, 0)}", "{(-1, 5), (1, 5)}", "{(1, 0), (1, 0)}"}),
            "{(0, 0), (1, 0)}");
  EXPECT_EQ(Eval("c64[2] select(pred[2] constant({1, 0}), c64[2] constant({(1, 2), (3, 4)}), "
                 "c64[2] constant({(5, 6), (7, 8)}))"),
            "{(1, 2), (7, 8)}");
}

TEST(InterpComplex, Converts) {
  EXPECT_EQ(Apply("convert", "f32[2]", {"{1.5, nan}"}, "c128[2]"), "{(1.5, 0), (nan, 0)}");
  EXPECT_EQ(Apply("convert", "s4[2]", {"{-1, 7}"}, "c64[2]"), "{(-1, 0), (7, 0)}");
  EXPECT_EQ(Apply("convert", "pred[2]", {"{1, 0}"}, "c64[2]"), "{(1, 0), (0, 0)}");
  EXPECT_EQ(Apply("convert", "c128[2]", {"{(0.1, 1e300), (-0, 2)}"}, "c64[2]"),
            "{(0.1, inf), (-0, 2)}");
  EXPECT_EQ(Apply("convert", "c64[2]", {"{(0.5, 3), (-0, 2)}"}, "c128[2]"), "{(0.5, 3), (-0, 2)}");
  EXPECT_EQ(Apply("convert", "c128[3]", {"{(-1, 0), (0, 1), (1e9, 2)}"}, "s32[3]"),
            "{-1, 0, 1000000000}");
  EXPECT_EQ(Apply("convert", "c64[2]", {"{(0, 1), (2, 0)}"}, "pred[2]"), "{0, 1}");
  EXPECT_EQ(Apply("convert", "c64[2]", {"{(1.06, 1), (-9, 0)}"}, "f8e5m2[2]"), "{1, -8}");
}

TEST(InterpComplex, MovesAndFolds) {
  EXPECT_EQ(Eval("c128[2,2] iota(), iota_dimension=0"),
            "{ { (0, 0), (0, 0) }, { (1, 0), (1, 0) } }");
  EXPECT_EQ(Eval("c128[2] reverse(c128[2] constant({(1, 2), (3, 4)})), dimensions={0}"),
            "{(3, 4), (1, 2)}");
  EXPECT_EQ(Eval("c64[3] pad(c64[1] constant({(1, 2)}), c64[] constant((0, -1))), padding=1_1"),
            "{(0, -1), (1, 2), (0, -1)}");
  // Short sums are in order in the type itself, products in a wider one.
  EXPECT_EQ(ValueOf(R"(HloModule m
sum { x = c64[] parameter(0)
  y = c64[] parameter(1)
  ROOT r = c64[] add(x, y) }
times { x = c128[] parameter(0)
  y = c128[] parameter(1)
  ROOT r = c128[] multiply(x, y) }
less { x = c128[] parameter(0)
  y = c128[] parameter(1)
  a = f64[] real(x)
  b = f64[] real(y)
  ROOT r = pred[] compare(a, b), direction=LT }
ENTRY e {
  x = c64[3] constant({(1e8, 1), (1, 1e8), (-1e8, -1e8)})
  y = c128[3] constant({(3, 4), (-1, 0), (2, -1)})
  zero = c64[] constant((0, 0))
  one = c128[] constant((1, 0))
  i = s32[2] constant({2, 0})
  s = c64[] reduce(x, zero), dimensions={0}, to_apply=sum
  p = c128[] reduce(y, one), dimensions={0}, to_apply=times
  w = c64[2] reduce-window(x, zero), window={size=2}, to_apply=sum
  d = c64[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  v = c128[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  o = c128[3] sort(y), dimensions={0}, to_apply=less
  g = c128[2] gather(y, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
  u = c128[3] scatter(y, i, g), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=times
  ROOT r = tuple(s, p, w, d, v, o, g, u)
})"),
            "((0, 0), (-10, -5), {(1e+08, 1e+08), (-1e+08, 0)}, (0, 2e+16), "
            "(0, 2.00000004e+16), {(-1, 0), (2, -1), (3, 4)}, {(2, -1), (3, 4)}, "
            "{(-7, 24), (-1, 0), (3, -4)})");
}

// Whatever the table lets through there is code for.
TEST(InterpComplex, EveryElementwiseOp) {
  for (int n = 0; n < kOpcodeCount; ++n) {
    const OpInfo& info = InfoOf(static_cast<Opcode>(n));
    const int64_t operands = ArityOf(info.opcode).min;
    if (!(info.types & kComplexType) || !IsElementwise(info.opcode)) continue;
    if (info.opcode == Opcode::kSelect) continue;
    std::string result = "c64[]", attributes;
    if (info.opcode == Opcode::kCompare) result = "pred[]", attributes = "direction=NE";
    if (info.opcode == Opcode::kAbs || info.opcode == Opcode::kReal ||
        info.opcode == Opcode::kImag) {
      result = "f32[]";
    }
    std::string text = Cat(result, " ", info.name, "(");
    for (int64_t k = 0; k < operands; ++k) text += Cat(k > 0 ? ", " : "", "c64[] constant((1, 2))");
    text += attributes.empty() ? ")" : Cat("), ", attributes);
    EXPECT_FALSE(StartsWith(Eval(text), "UNIMPLEMENTED")) << info.name;
  }
}

}  // namespace
}  // namespace kiln

// Complex numbers in the evaluator: functions over the plane against MPFR, special values, and the
// ops that hold them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include "complex_reference.h"
#include "interp_test_util.h"

namespace kiln {
namespace {

using testing::Apply;
using testing::BigComplex;
using testing::Eval;
using testing::Real;
using testing::ValueOf;

template <typename T>
constexpr ElementType kTypeOf = sizeof(T) == 4 ? ElementType::kC64 : ElementType::kC128;

// How far a part is off, in units of the last place that T has at the true value; those of numbers
// below the normal ones do not get smaller. What is too large for T is an infinity.
template <typename T>
double UlpError(T got, const Real& expected) {
  using Limits = std::numeric_limits<T>;
  constexpr int kDigits = Limits::digits;
  const double rounded = mpfr_get_d(expected.value, MPFR_RNDN);
  if (!std::isfinite(static_cast<T>(rounded))) return got == static_cast<T>(rounded) ? 0 : HUGE_VAL;
  if (!std::isfinite(got)) return HUGE_VAL;
  Real error = Real(got) - expected;
  if (mpfr_zero_p(error.value)) return 0;
  mpfr_exp_t exponent = Limits::min_exponent;
  if (!mpfr_zero_p(expected.value)) {
    exponent = std::max<mpfr_exp_t>(mpfr_get_exp(expected.value), exponent);
  }
  mpfr_mul_2si(error.value, error.value, kDigits - exponent, MPFR_RNDN);
  return std::fabs(mpfr_get_d(error.value, MPFR_RNDN));
}

// The bits that hold sums and products of the parts, whatever their sizes.
template <typename T>
mpfr_prec_t PrecisionFor(const std::complex<T>& z) {
  auto is_extreme = [](T part) {
    return part != 0 && std::fabs(std::log2(std::fabs(static_cast<double>(part)))) > 200;
  };
  return is_extreme(z.real()) || is_extreme(z.imag()) ? 5000 : 1000;
}

template <typename T>
std::vector<std::complex<T>> Grid() {
  constexpr double kEpsilon = std::numeric_limits<T>::epsilon();
  const double least = std::numeric_limits<T>::denorm_min(), most = std::numeric_limits<T>::max();
  const double parts[] = {0,   least,        std::sqrt(least),   3e-4, 0.5, 1 - kEpsilon / 2,
                          1,   1 + kEpsilon, 1.5707963267948966, 10.5, 80,  1e6,
                          most};
  std::vector<std::complex<T>> grid;
  for (double x : parts) {
    for (double y : parts) {
      for (double sign_x : {1.0, -1.0}) {
        for (double sign_y : {1.0, -1.0}) {
          grid.emplace_back(static_cast<T>(std::copysign(x, sign_x)),
                            static_cast<T>(std::copysign(y, sign_y)));
        }
      }
    }
  }
  // And some of every size, among them such as lie close to the unit circle.
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> unit(-1, 1);
  for (int i = 0; i < 100; ++i) {
    const double size = std::exp(8 * unit(random)), angle = 4 * unit(random);
    for (double r : {size, 1 + 1e-4 * unit(random)}) {
      grid.emplace_back(static_cast<T>(r * std::cos(angle)), static_cast<T>(r * std::sin(angle)));
    }
  }
  return grid;
}

template <typename T>
Literal ToLiteral(const std::vector<std::complex<T>>& values) {
  return Literal::Array<std::complex<T>>(Shape(kTypeOf<T>, {static_cast<int64_t>(values.size())}),
                                         values);
}

struct Function {
  const char* op;
  BigComplex (*reference)(const BigComplex& z);
};
BigComplex One() { return {Real(1), Real(0)}; }
const Function kFunctions[] = {
    {"acos", [](const BigComplex& z) { return Acos(z); }},
    {"acosh", [](const BigComplex& z) { return Acosh(z); }},
    {"asin", [](const BigComplex& z) { return Asin(z); }},
    {"asinh", [](const BigComplex& z) { return Asinh(z); }},
    {"atanh", [](const BigComplex& z) { return Atanh(z); }},
    {"cbrt", [](const BigComplex& z) { return Cbrt(z); }},
    {"cosh", [](const BigComplex& z) { return Cosh(z); }},
    {"cosine", [](const BigComplex& z) { return Cos(z); }},
    {"exponential", [](const BigComplex& z) { return Exp(z); }},
    {"exponential-minus-one", [](const BigComplex& z) { return Exp(z) - One(); }},
    {"log", [](const BigComplex& z) { return Log(z); }},
    {"log-plus-one",
     [](const BigComplex& z) {
       return Log(BigComplex{z.re + 1, z.im});
     }},
    {"logistic",
     [](const BigComplex& z) {
       return One() / (One() + Exp(BigComplex{-z.re, -z.im}));
     }},
    {"rsqrt", [](const BigComplex& z) { return One() / Sqrt(z); }},
    {"sign",
     [](const BigComplex& z) {
       const Real size = Hypot(z.re, z.im);
       return BigComplex{z.re / size, z.im / size};
     }},
    {"sine", [](const BigComplex& z) { return Sin(z); }},
    {"sinh", [](const BigComplex& z) { return Sinh(z); }},
    {"sqrt", [](const BigComplex& z) { return Sqrt(z); }},
    {"tan", [](const BigComplex& z) { return Tan(z); }},
    {"tanh", [](const BigComplex& z) { return Tanh(z); }},
};

// Both parts within this many units of the last place.
constexpr double kBound = 1;

template <typename T>
void CheckFunctions() {
  const std::vector<std::complex<T>> grid = Grid<T>();
  for (const Function& f : kFunctions) {
    Literal result = testing::Evaluate(f.op, {ToLiteral(grid)}, kTypeOf<T>);
    double worst = 0;
    std::complex<T> where;
    size_t checked = 0;
    for (size_t i = 0; i < grid.size(); ++i) {
      Real::Precision() = PrecisionFor(grid[i]);
      const BigComplex expected = f.reference({Real(grid[i].real()), Real(grid[i].imag())});
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
    EXPECT_GT(2 * checked, grid.size()) << f.op;
  }
}

TEST(InterpComplex, FunctionsOfC64) { CheckFunctions<float>(); }
TEST(InterpComplex, FunctionsOfC128) { CheckFunctions<double>(); }

struct BinaryFunction {
  const char* op;
  BigComplex (*reference)(const BigComplex& x, const BigComplex& y);
  // In units of the result's absolute value, not of each part.
  bool by_size = false;
};
const BinaryFunction kBinaryFunctions[] = {
    {"add", [](const BigComplex& x, const BigComplex& y) { return x + y; }},
    {"subtract", [](const BigComplex& x, const BigComplex& y) { return x - y; }},
    {"multiply", [](const BigComplex& x, const BigComplex& y) { return x * y; }},
    {"divide", [](const BigComplex& x, const BigComplex& y) { return x / y; }},
    {"power", [](const BigComplex& x, const BigComplex& y) { return Exp(y * Log(x)); }, true},
    {"atan2",
     [](const BigComplex& y, const BigComplex& x) {
       const BigComplex log = Log(BigComplex{x.re - y.im, x.im + y.re} / Sqrt(x * x + y * y));
       return BigComplex{log.im, -log.re};
     },
     true},
};

template <typename T>
void CheckBinaryFunctions(double scale) {
  Real::Precision() = 1024;
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> unit(-1, 1);
  auto number = [&](double most) {
    return std::complex<T>(static_cast<T>(most * unit(random)),
                           static_cast<T>(most * unit(random)));
  };
  std::vector<std::complex<T>> xs, ys;
  for (int i = 0; i < 2000; ++i) {
    xs.push_back(number(std::exp(scale * unit(random))));
    ys.push_back(number(std::exp(unit(random))));
  }
  for (const BinaryFunction& f : kBinaryFunctions) {
    Literal result = testing::Evaluate(f.op, {ToLiteral(xs), ToLiteral(ys)}, kTypeOf<T>);
    double worst = 0;
    size_t where = 0;
    for (size_t i = 0; i < xs.size(); ++i) {
      const BigComplex expected = f.reference({Real(xs[i].real()), Real(xs[i].imag())},
                                              {Real(ys[i].real()), Real(ys[i].imag())});
      const std::complex<T> got = result.values<std::complex<T>>()[i];
      double error;
      if (f.by_size) {
        const Real size = Hypot(expected.re, expected.im);
        const Real off = Hypot(Real(got.real()) - expected.re, Real(got.imag()) - expected.im);
        error = mpfr_get_d((off / size).value, MPFR_RNDN) / std::numeric_limits<T>::epsilon();
      } else {
        error = std::max(UlpError(got.real(), expected.re), UlpError(got.imag(), expected.im));
      }
      if (error > worst) worst = error, where = i;
    }
    EXPECT_LE(worst, kBound) << f.op << " of " << xs[where] << " and " << ys[where];
  }
}

TEST(InterpComplex, BinaryFunctions) {
  CheckBinaryFunctions<float>(8);
  CheckBinaryFunctions<double>(20);
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
  EXPECT_EQ(of("rsqrt", "(0, 0)"), "(inf, -nan)");
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
  EXPECT_EQ(both("power", "(0, 0)", "(0, 0)"), "(1, 0)");
  EXPECT_EQ(both("power", "(0, 0)", "(2, 0)"), "(0, 0)");
  EXPECT_EQ(both("power", "(nan, 1)", "(0, 0)"), "(1, 0)");
  EXPECT_EQ(both("power", "(2, 0)", "(3, 0)"), "(8, 0)");
  EXPECT_EQ(both("atan2", "(1, 0)", "(-1, 0)"), "(2.3561945, 0)");
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
  // Sums and products in a wider type: nothing is lost between the large terms.
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
            "((1, 1), (-10, -5), {(1e+08, 1e+08), (-1e+08, 0)}, (0, 2e+16), "
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

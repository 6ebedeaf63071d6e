// The evaluator's functions that C++ lacks: special values, values from elsewhere, and MPFR where
// it has the function.
#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <random>

#include "interp/special.h"
#include "support/interp.h"

namespace kiln {
namespace {

using testing::Apply;

TEST(InterpSpecial, ErfcAndErfInv) {
  EXPECT_EQ(Apply("kiln.erfc", "f64[6]", {"{0.5, -1, 3, 26.5, -6, 0}"}),
            "{0.4795001221869535, 1.8427007929497148, 2.209049699858544e-05, "
            "2.2109076642637343e-307, 2, 1}");
  EXPECT_EQ(Apply("kiln.erfc", "f32[5]", {"{-0, inf, -inf, nan, 10}"}), "{1, 0, 2, nan, 1e-45}");
  EXPECT_EQ(Apply("kiln.erf-inv", "f64[4]",
                  {"{0.5, -0.9, 9.313225746154785e-10, "
                   "0.9999999999999999}"}),
            "{0.4769362762044699, -1.1630871536766743, 8.253631419062224e-10, "
            "5.8635847487551676}");
  EXPECT_EQ(Apply("kiln.erf-inv", "f32[7]", {"{0, -0, 1, -1, 1.0000001, -inf, nan}"}),
            "{0, -0, inf, -inf, nan, nan, nan}");
  EXPECT_EQ(Apply("kiln.erf-inv", "f64[1]", {"{5e-324}"}), "{5e-324}");
}

TEST(InterpSpecial, GammaFunctions) {
  EXPECT_EQ(Apply("kiln.lgamma", "f64[7]", {"{0.5, -0.5, 3.5, -2.5, 100, 1e-10, 1e300}"}),
            "{0.5723649429247001, 1.2655121234846454, 1.2009736023470743, -0.056243716497674054, "
            "359.1342053695754, 23.025850929882736, 6.897755278982137e+302}");
  EXPECT_EQ(Apply("kiln.lgamma", "f32[9]", {"{0, -0, 1, 2, -1, -3, inf, -inf, nan}"}),
            "{inf, inf, 0, 0, inf, inf, inf, inf, nan}");
  EXPECT_EQ(Apply("kiln.digamma", "f64[6]", {"{1, 0.5, -0.5, 10, -3.25, 1.5}"}),
            "{-0.5772156649015329, -1.9635100260214235, 0.03648997397857652, 2.251752589066721, "
            "4.46627587235028, 0.03648997397857652}");
  EXPECT_EQ(Apply("kiln.digamma", "f32[8]", {"{0, -0, -1, -7, inf, -inf, nan, -1e30}"}),
            "{-inf, -inf, nan, nan, inf, nan, nan, nan}");
  EXPECT_EQ(Apply("kiln.digamma", "bf16[2]", {"{2.1875, -0.5}"}), "{0.535, 0.0364}");
}

TEST(InterpSpecial, BesselI1e) {
  EXPECT_EQ(Apply("kiln.bessel-i1e", "f64[6]", {"{1, -2, 30, 100, 1e-5, -0}"}),
            "{0.20791041534970844, -0.21526928924893765, 0.07191633059864755, "
            "0.03974415302513025, 4.999950000312499e-06, -0}");
  EXPECT_EQ(Apply("kiln.bessel-i1e", "f32[3]", {"{inf, -inf, nan}"}), "{0, -0, nan}");
}

TEST(InterpSpecial, Zeta) {
  EXPECT_EQ(Apply("kiln.zeta", "f64[6]",
                  {"{2, 3, 2, 1.5, 30, 3}", "{0.25, -2.5, -7.75, 4, 2, -100000.25}"}),
            "{17.19732915450711, 0.0541020258208637, 19.61814433435229, 1.0663718683623393, "
            "9.313274324196682e-10, -62.01255336054964}");
  // 1 and below; poles; what is no whole number at a number below 0; infinities and NaN.
  EXPECT_EQ(Apply("kiln.zeta", "f32[5]", {"{1, 0.5, 1, -3, 1}", "{3, 3, -2.5, 1, inf}"}),
            "{inf, nan, inf, nan, inf}");
  EXPECT_EQ(Apply("kiln.zeta", "f32[5]", {"{2, 3, 2, 3, 2.5}", "{0, -0, -5, -5, -1.5}"}),
            "{inf, nan, inf, nan, nan}");
  EXPECT_EQ(
      Apply("kiln.zeta", "f32[6]", {"{inf, inf, inf, 2, 2, nan}", "{2, 1, 0.5, inf, nan, 1}"}),
      "{0, 1, inf, 0, nan, nan}");
  // As many terms as there are whole numbers below: not one by one.
  EXPECT_EQ(Apply("kiln.zeta", "f64[3]", {"{2, 2, 1e308}", "{-1e15, -1000000000000000.5, 1e307}"}),
            "{inf, 9.869604401089358, 0}");
}

TEST(InterpSpecial, Polygamma) {
  EXPECT_EQ(Apply("kiln.polygamma", "f64[7]",
                  {"{1, 2, 3, 5, 20, 150, 4}", "{0.25, 1.5, -0.5, 10, 30, 40, -3.25}"}),
            "{17.19732915450711, -0.82879664423432, 193.40909103400244, 0.0003059451621172682, "
            "-4.786085204571764e-13, -718491657374430396416, 24481.546101215874}");
  EXPECT_EQ(Apply("kiln.polygamma", "f64[4]", {"{0, 0, 0, 0}", "{0.5, -1, inf, -inf}"}),
            "{-1.9635100260214235, nan, inf, nan}");
  EXPECT_EQ(Apply("kiln.polygamma", "f32[7]",
                  {"{0.5, -1, nan, 1, 1, 2, 1}", "{2, 2, 2, nan, -3, -3, inf}"}),
            "{nan, nan, nan, nan, inf, nan, 0}");
  // The factorial is no number of the type, the product is: 200! zeta(201, 100).
  EXPECT_EQ(Apply("kiln.polygamma", "f64[1]", {"{200}", "{100}"}), "{-9.125424691096223e-28}");
  EXPECT_EQ(Apply("kiln.polygamma", "f32[1]", {"{150}", "{40}"}), "{-7.184917e+20}");
}

// The difference from MPFR, in units of the last place that a double has at the larger of the
// result and `least`. A NaN or an infinity must be one itself.
class Mpfr {
 public:
  Mpfr() { mpfr_inits2(120, x_, y_, nullptr); }
  ~Mpfr() {
    mpfr_clears(x_, y_, nullptr);
    mpfr_free_cache();
  }
  template <typename F>
  double Error(long double got, double x, double least, F&& f) {
    mpfr_set_d(x_, x, MPFR_RNDN);
    f(x_);
    if (!mpfr_number_p(x_)) {
      double special = mpfr_get_d(x_, MPFR_RNDN);
      return got == special || (std::isnan(got) && std::isnan(special)) ? 0 : INFINITY;
    }
    mpfr_set_ld(y_, got, MPFR_RNDN);
    mpfr_sub(y_, y_, x_, MPFR_RNDN);
    double size = std::max(std::abs(mpfr_get_d(x_, MPFR_RNDN)), least);
    return std::abs(mpfr_get_d(y_, MPFR_RNDN)) / std::ldexp(1, std::ilogb(size) - 52);
  }

 private:
  mpfr_t x_, y_;
};

TEST(InterpSpecial, AgreesWithMpfr) {
  Mpfr mpfr;
  std::mt19937_64 random(5);
  auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  constexpr double kBound = 0x1p-6;
  for (int k = 0; k < 400; ++k) {
    double wide = std::ldexp(unit() * 2 - 1, static_cast<int>(random() % 40) - 30);
    double x = k % 2 ? wide : unit() * 40 - 20;
    // Next to a pole, and so to a zero, below 0.
    if (k % 8 == 0) x = -std::floor(unit() * 20) + std::ldexp(unit(), -static_cast<int>(k / 8));
    auto lgamma = [](mpfr_t v) {
      int sign;
      mpfr_lgamma(v, &sign, v, MPFR_RNDN);
    };
    auto digamma = [](mpfr_t v) { mpfr_digamma(v, v, MPFR_RNDN); };
    EXPECT_LT(mpfr.Error(interp::Lgamma<long double>(x), x, 1, lgamma), kBound) << x;
    EXPECT_LT(mpfr.Error(interp::Digamma<long double>(x), x, 1, digamma), kBound) << x;
    double modest = std::fmod(x, 26);
    auto erfc = [](mpfr_t v) { mpfr_erfc(v, v, MPFR_RNDN); };
    EXPECT_LT(mpfr.Error(interp::Erfc<long double>(modest), modest, 0, erfc), kBound) << modest;
    // Riemann's zeta function, by itself and by a sum of three.
    double s = 1 + std::abs(modest), q = unit() * 50;
    auto zeta = [](mpfr_t v) { mpfr_zeta(v, v, MPFR_RNDN); };
    EXPECT_LT(mpfr.Error(interp::Zeta<long double>(s, 1), s, 0, zeta), kBound) << s;
    long double parts = 0;
    for (int part = 0; part < 3; ++part) parts += interp::Zeta<long double>(s, (q + part) / 3);
    long double whole = std::pow(3.0L, s) * interp::Zeta<long double>(s, q);
    EXPECT_LT(std::abs(parts - whole), whole * 0x1p-47L) << s << ", " << q;
  }
}

// What makes an error of a unit in erf_inv makes as many in erf as the derivative says.
TEST(InterpSpecial, ErfOfErfInv) {
  std::mt19937_64 random(6);
  for (int k = 0; k < 1000; ++k) {
    double gap = std::ldexp(1 + static_cast<double>(random() >> 11) * 0x1p-53, -2 - k % 50);
    double x = k % 3 ? 1 - gap : gap;
    auto y = interp::ErfInv<long double>(x);
    long double slope = 2 / std::sqrt(3.14159265358979323846264L) * std::exp(-y * y);
    long double off = x < 0.5 ? std::erf(y) - x : 1.0L - x - std::erfc(y);
    ASSERT_LT(std::abs(off), slope * y * 0x1p-60L) << x;
  }
}

// The series and the asymptotic one meet; I_1 by the integral of e^(x (cos t - 1)) cos(t) / pi, for
// which the trapezoidal rule is as good as exact.
TEST(InterpSpecial, BesselI1eByItsIntegral) {
  for (double x : {0.125, 1.0, 3.5, 10.0, 25.0, 39.875, 40.125, 60.0, 150.0}) {
    constexpr int kPoints = 400;
    long double sum = 0;
    for (int k = 0; k < kPoints; ++k) {
      long double t = 2 * 3.14159265358979323846264L * (k + 0.5L) / kPoints;
      sum += std::exp(x * (std::cos(t) - 1)) * std::cos(t);
    }
    EXPECT_NEAR(static_cast<double>(interp::BesselI1e<long double>(x) / (sum / kPoints)), 1, 1e-15)
        << x;
  }
}

}  // namespace
}  // namespace kiln

// Functions of complex numbers to a thousand bits and more, by their formulas in MPFR, and how far
// values are off.
#pragma once

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <span>
#include <utility>

namespace kiln::testing {

// A real number of as many bits as PrecisionOf says at the time it is made.
class Real {
 public:
  static mpfr_prec_t& Precision() {
    static thread_local mpfr_prec_t bits = 1024;
    return bits;
  }

  Real() { mpfr_init2(value, Precision()); }
  Real(double x) : Real() { mpfr_set_d(value, x, MPFR_RNDN); }  // NOLINT: a number is a real
  Real(const Real& other) : Real() { mpfr_set(value, other.value, MPFR_RNDN); }
  Real& operator=(const Real& other) {
    mpfr_set(value, other.value, MPFR_RNDN);
    return *this;
  }
  ~Real() { mpfr_clear(value); }

  using Unary = int (*)(mpfr_t, const mpfr_t, mpfr_rnd_t);
  using Binary = int (*)(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);
  static Real Of(Unary f, const Real& x) {
    Real result;
    f(result.value, x.value, MPFR_RNDN);
    return result;
  }
  static Real Of(Binary f, const Real& x, const Real& y) {
    Real result;
    f(result.value, x.value, y.value, MPFR_RNDN);
    return result;
  }
  friend Real operator+(const Real& x, const Real& y) { return Of(mpfr_add, x, y); }
  friend Real operator-(const Real& x, const Real& y) { return Of(mpfr_sub, x, y); }
  friend Real operator*(const Real& x, const Real& y) { return Of(mpfr_mul, x, y); }
  friend Real operator/(const Real& x, const Real& y) { return Of(mpfr_div, x, y); }
  Real operator-() const { return Of(mpfr_neg, *this); }
  bool IsNegative() const { return mpfr_signbit(value) != 0; }

  mpfr_t value;
};

inline Real Sqrt(const Real& x) { return Real::Of(mpfr_sqrt, x); }
inline Real Exp(const Real& x) { return Real::Of(mpfr_exp, x); }
inline Real Log(const Real& x) { return Real::Of(mpfr_log, x); }
inline Real Sin(const Real& x) { return Real::Of(mpfr_sin, x); }
inline Real Cos(const Real& x) { return Real::Of(mpfr_cos, x); }
inline Real Sinh(const Real& x) { return Real::Of(mpfr_sinh, x); }
inline Real Cosh(const Real& x) { return Real::Of(mpfr_cosh, x); }
inline Real Asinh(const Real& x) { return Real::Of(mpfr_asinh, x); }
inline Real Cbrt(const Real& x) { return Real::Of(mpfr_cbrt, x); }
inline Real Abs(const Real& x) { return Real::Of(mpfr_abs, x); }
inline Real Atan2(const Real& y, const Real& x) { return Real::Of(mpfr_atan2, y, x); }
inline Real Hypot(const Real& x, const Real& y) { return Real::Of(mpfr_hypot, x, y); }

struct BigComplex {
  Real re, im;

  friend BigComplex operator+(const BigComplex& x, const BigComplex& y) {
    return {x.re + y.re, x.im + y.im};
  }
  friend BigComplex operator-(const BigComplex& x, const BigComplex& y) {
    return {x.re - y.re, x.im - y.im};
  }
  friend BigComplex operator*(const BigComplex& x, const BigComplex& y) {
    return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
  }
  friend BigComplex operator/(const BigComplex& x, const BigComplex& y) {
    const Real square = y.re * y.re + y.im * y.im;
    return {(x.re * y.re + x.im * y.im) / square, (x.im * y.re - x.re * y.im) / square};
  }
};

inline BigComplex Conj(const BigComplex& z) { return {z.re, -z.im}; }
inline BigComplex Exp(const BigComplex& z) {
  const Real size = Exp(z.re);
  return {size * Cos(z.im), size * Sin(z.im)};
}
inline BigComplex Log(const BigComplex& z) {
  return {Log(z.re * z.re + z.im * z.im) / 2, Atan2(z.im, z.re)};
}
// With the sign of a zero deciding on which side of the cut it is.
inline BigComplex Sqrt(const BigComplex& z) {
  const Real u = Sqrt((Hypot(z.re, z.im) + Abs(z.re)) / 2);
  if (mpfr_zero_p(u.value)) return {u, z.im};
  const Real v = Abs(z.im) / (u * 2);
  const Real &re = z.re.IsNegative() ? v : u, &im = z.re.IsNegative() ? u : v;
  return {re, z.im.IsNegative() ? -im : im};
}
inline BigComplex Cbrt(const BigComplex& z) {
  const Real size = Cbrt(Hypot(z.re, z.im)), angle = Atan2(z.im, z.re) / 3;
  return {size * Cos(angle), size * Sin(angle)};
}
inline BigComplex Sin(const BigComplex& z) {
  return {Sin(z.re) * Cosh(z.im), Cos(z.re) * Sinh(z.im)};
}
inline BigComplex Cos(const BigComplex& z) {
  return {Cos(z.re) * Cosh(z.im), -(Sin(z.re) * Sinh(z.im))};
}
inline BigComplex Sinh(const BigComplex& z) {
  return {Sinh(z.re) * Cos(z.im), Cosh(z.re) * Sin(z.im)};
}
inline BigComplex Cosh(const BigComplex& z) {
  return {Cosh(z.re) * Cos(z.im), Sinh(z.re) * Sin(z.im)};
}
// Where the sines and cosines themselves would cancel.
inline BigComplex Tanh(const BigComplex& z) {
  const Real divisor = Cosh(z.re * 2) + Cos(z.im * 2);
  return {Sinh(z.re * 2) / divisor, Sin(z.im * 2) / divisor};
}
inline BigComplex Tan(const BigComplex& z) {
  const BigComplex turned = Tanh({-z.im, z.re});
  return {turned.im, -turned.re};
}
// W. Kahan, Branch Cuts for Complex Elementary Functions.
inline BigComplex Asin(const BigComplex& z) {
  const BigComplex below = Sqrt({Real(1) - z.re, -z.im}), above = Sqrt({Real(1) + z.re, z.im});
  return {Atan2(z.re, (below * above).re), Asinh((Conj(below) * above).im)};
}
inline BigComplex Acos(const BigComplex& z) {
  const BigComplex below = Sqrt({Real(1) - z.re, -z.im}), above = Sqrt({Real(1) + z.re, z.im});
  return {Atan2(below.re, above.re) * 2, Asinh((Conj(above) * below).im)};
}
inline BigComplex Acosh(const BigComplex& z) {
  const BigComplex below = Sqrt({z.re - Real(1), z.im}), above = Sqrt({z.re + Real(1), z.im});
  return {Asinh((Conj(below) * above).re), Atan2(below.im, above.re) * 2};
}
inline BigComplex Asinh(const BigComplex& z) {
  const BigComplex turned = Asin({-z.im, z.re});
  return {turned.im, -turned.re};
}
inline BigComplex Atanh(const BigComplex& z) {
  const Real one(1), below = one - z.re, above = one + z.re, square = z.im * z.im;
  return {Log((above * above + square) / (below * below + square)) / 4,
          Atan2(z.im * 2, below * above - square) / 2};
}

// The functions of the op table.
struct ComplexReference {
  const char* op;
  BigComplex (*value)(const BigComplex& z);
};
inline BigComplex BigOne() { return {Real(1), Real(0)}; }
inline constexpr ComplexReference kComplexReferences[] = {
    {"acos", [](const BigComplex& z) { return Acos(z); }},
    {"acosh", [](const BigComplex& z) { return Acosh(z); }},
    {"asin", [](const BigComplex& z) { return Asin(z); }},
    {"asinh", [](const BigComplex& z) { return Asinh(z); }},
    {"atanh", [](const BigComplex& z) { return Atanh(z); }},
    {"cbrt", [](const BigComplex& z) { return Cbrt(z); }},
    {"cosh", [](const BigComplex& z) { return Cosh(z); }},
    {"cosine", [](const BigComplex& z) { return Cos(z); }},
    {"exponential", [](const BigComplex& z) { return Exp(z); }},
    {"exponential-minus-one", [](const BigComplex& z) { return Exp(z) - BigOne(); }},
    {"log", [](const BigComplex& z) { return Log(z); }},
    {"log-plus-one",
     [](const BigComplex& z) {
       return Log(BigComplex{z.re + 1, z.im});
     }},
    {"logistic",
     [](const BigComplex& z) {
       return BigOne() / (BigOne() + Exp(BigComplex{-z.re, -z.im}));
     }},
    {"rsqrt", [](const BigComplex& z) { return BigOne() / Sqrt(z); }},
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

struct ComplexReferenceOfTwo {
  const char* op;
  BigComplex (*value)(const BigComplex& x, const BigComplex& y);
};
inline constexpr ComplexReferenceOfTwo kComplexReferencesOfTwo[] = {
    {"add", [](const BigComplex& x, const BigComplex& y) { return x + y; }},
    {"subtract", [](const BigComplex& x, const BigComplex& y) { return x - y; }},
    {"multiply", [](const BigComplex& x, const BigComplex& y) { return x * y; }},
    {"divide", [](const BigComplex& x, const BigComplex& y) { return x / y; }},
    {"power", [](const BigComplex& x, const BigComplex& y) { return Exp(y * Log(x)); }},
    {"atan2",
     [](const BigComplex& y, const BigComplex& x) {
       // p / sqrt(p m); of its size, sqrt(|p| / |m|), the logarithm is 0 where both are the same.
       const BigComplex p = {x.re - y.im, x.im + y.re}, m = {x.re + y.im, x.im - y.re};
       const Real size = p.re * p.re + p.im * p.im, other = m.re * m.re + m.im * m.im;
       return BigComplex{Log(p / Sqrt(x * x + y * y)).im, Log(other / size) / 4};
     }},
};

// The bits that hold sums and products of the parts, whatever their sizes.
template <typename T>
mpfr_prec_t PrecisionFor(const std::complex<T>& z) {
  auto is_extreme = [](T part) {
    return part != 0 && std::fabs(std::log2(std::fabs(static_cast<double>(part)))) > 200;
  };
  return is_extreme(z.real()) || is_extreme(z.imag()) ? 5000 : 1000;
}

// How far a part is off, in units of the last place that T has at the true value, or at `least` if
// that is larger; those of numbers below the normal ones do not get smaller. What is too large for
// T is an infinity, or where it is next to the largest number one of the two.
template <typename T>
double UlpError(T got, const Real& expected, double least = 0) {
  using Limits = std::numeric_limits<T>;
  constexpr int kDigits = Limits::digits;
  const double rounded = mpfr_get_d(expected.value, MPFR_RNDN);
  if (std::isnan(got)) return HUGE_VAL;
  if (!std::isfinite(static_cast<T>(rounded)) && std::isinf(got)) {
    return (got < 0) == (rounded < 0) ? 0 : HUGE_VAL;
  }
  // An infinity as the number after the largest one.
  Real value(got);
  if (std::isinf(got)) {
    value = Real(got < 0 ? -0.5 : 0.5);
    mpfr_mul_2si(value.value, value.value, Limits::max_exponent + 1, MPFR_RNDN);
  }
  Real error = value - expected;
  if (mpfr_zero_p(error.value)) return 0;
  mpfr_exp_t exponent = Limits::min_exponent;
  if (!mpfr_zero_p(expected.value)) {
    exponent = std::max<mpfr_exp_t>(mpfr_get_exp(expected.value), exponent);
  }
  exponent = std::min<mpfr_exp_t>(exponent, Limits::max_exponent);
  if (least > 0) exponent = std::max<mpfr_exp_t>(exponent, std::ilogb(least) + 1);
  mpfr_mul_2si(error.value, error.value, kDigits - exponent, MPFR_RNDN);
  return std::fabs(mpfr_get_d(error.value, MPFR_RNDN));
}

}  // namespace kiln::testing

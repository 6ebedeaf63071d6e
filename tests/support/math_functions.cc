#include "support/math_functions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "interp/special.h"

namespace kiln::testing {
namespace {

constexpr mpfr_rnd_t kRound = MPFR_RNDN;

double Logistic(double x) {
  double e = std::abs(x) > 700 ? 0 : std::exp(-std::abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

void BigLogistic(Big& b) {
  mpfr_neg(b.other, b.value, kRound);
  mpfr_exp(b.other, b.other, kRound);
  mpfr_add_ui(b.other, b.other, 1, kRound);
  mpfr_ui_div(b.value, 1, b.other, kRound);
}

// What MPFR gives NaN or +inf for is the op's NaN or -inf.
void BigDigamma(Big& b) {
  if (mpfr_zero_p(b.value)) {
    mpfr_set_inf(b.value, -1);
  } else {
    mpfr_digamma(b.value, b.value, kRound);
  }
}

void BigLgamma(Big& b) {
  int sign;
  mpfr_lgamma(b.value, &sign, b.value, kRound);
}

// A step of Newton's from what has 64 bits, by erf, or next to 1 by erfc.
void BigErfInv(Big& b) {
  const double x = mpfr_get_d(b.value, kRound), a = std::abs(x);
  const long double y = interp::ErfInv<long double>(a);
  if (!(a < 1) || a == 0) {
    mpfr_set_ld(b.value, std::copysign(y, x), kRound);
    if (std::isnan(y)) mpfr_set_nan(b.value);
    return;
  }
  mpfr_set_ld(b.other, y, kRound);
  if (a < 0.5) {
    mpfr_erf(b.third, b.other, kRound);
    mpfr_sub_d(b.third, b.third, a, kRound);
  } else {
    mpfr_erfc(b.third, b.other, kRound);
    mpfr_d_sub(b.third, 1 - a, b.third, kRound);
  }
  mpfr_sqr(b.fourth, b.other, kRound);
  mpfr_exp(b.fourth, b.fourth, kRound);
  mpfr_mul(b.third, b.third, b.fourth, kRound);
  mpfr_const_pi(b.fourth, kRound);
  mpfr_sqrt(b.fourth, b.fourth, kRound);
  mpfr_div_2ui(b.fourth, b.fourth, 1, kRound);
  mpfr_mul(b.third, b.third, b.fourth, kRound);
  mpfr_sub(b.value, b.other, b.third, kRound);
  if (std::signbit(x)) mpfr_neg(b.value, b.value, kRound);
}

// I_1(x) e^-x for x > 0 by its power series, or its asymptotic one.
void BigBesselI1e(Big& b) {
  if (!mpfr_number_p(b.value) || mpfr_zero_p(b.value)) {
    if (mpfr_inf_p(b.value)) mpfr_set_zero(b.value, mpfr_sgn(b.value));
    return;
  }
  const bool negative = mpfr_signbit(b.value);
  mpfr_abs(b.value, b.value, kRound);
  mpfr_t &x = b.value, &term = b.other, &sum = b.third, &square = b.fourth;
  if (mpfr_cmp_ui(x, 64) < 0) {
    mpfr_div_2ui(term, x, 1, kRound);
    mpfr_set(sum, term, kRound);
    mpfr_sqr(square, term, kRound);
    for (unsigned long k = 1; mpfr_get_exp(term) > mpfr_get_exp(sum) - Big::kPrecision; ++k) {
      mpfr_mul(term, term, square, kRound);
      mpfr_div_ui(term, term, k * (k + 1), kRound);
      mpfr_add(sum, sum, term, kRound);
    }
    mpfr_neg(term, x, kRound);
    mpfr_exp(term, term, kRound);
    mpfr_mul(x, sum, term, kRound);
  } else {
    mpfr_set_ui(term, 1, kRound);
    mpfr_set_ui(sum, 1, kRound);
    for (unsigned long k = 1; mpfr_get_exp(term) > -Big::kPrecision && k < 120; ++k) {
      long odd = 2 * static_cast<long>(k) - 1;
      mpfr_mul_si(term, term, odd * odd - 4, kRound);
      mpfr_div_ui(term, term, 8 * k, kRound);
      mpfr_div(term, term, x, kRound);
      mpfr_add(sum, sum, term, kRound);
    }
    mpfr_const_pi(term, kRound);
    mpfr_mul_2ui(term, term, 1, kRound);
    mpfr_mul(term, term, x, kRound);
    mpfr_sqrt(term, term, kRound);
    mpfr_div(x, sum, term, kRound);
  }
  if (negative) mpfr_neg(x, x, kRound);
}

// Functions of one operand that MPFR has.
template <int (*f)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t)>
void Of(Big& b, double) {
  f(b.value, b.value, kRound);
}
template <void (*f)(Big&)>
void Of(Big& b, double) {
  f(b);
}
template <int (*f)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t)>
void OfTwo(Big& b, double y) {
  mpfr_set_d(b.other, y, kRound);
  f(b.value, b.value, b.other, kRound);
}
template <int (*f)(mpfr_ptr, mpfr_srcptr)>
void Whole(Big& b, double) {
  f(b.value, b.value);
}

// The C library takes its time over what has no value.
const MathFunction kUnary[] = {
    {{Opcode::kAbs}, [](double x, double) { return std::abs(x); }, Of<mpfr_abs>},
    {{Opcode::kAcos},
     [](double x, double) { return std::abs(x) > 1 ? NAN : std::acos(x); },
     Of<mpfr_acos>},
    {{Opcode::kAcosh},
     [](double x, double) { return x < 1 ? NAN : std::acosh(x); },
     Of<mpfr_acosh>},
    {{Opcode::kAsin},
     [](double x, double) { return std::abs(x) > 1 ? NAN : std::asin(x); },
     Of<mpfr_asin>},
    {{Opcode::kAsinh}, [](double x, double) { return std::asinh(x); }, Of<mpfr_asinh>},
    {{Opcode::kAtan2}, [](double x, double) { return std::atan(x); }, Of<mpfr_atan>},
    {{Opcode::kAtanh},
     [](double x, double) { return std::abs(x) > 1 ? NAN : std::atanh(x); },
     Of<mpfr_atanh>},
    {{Opcode::kBesselI1e}, [](double x, double) { return interp::BesselI1e(x); }, Of<BigBesselI1e>},
    {{Opcode::kCbrt}, [](double x, double) { return std::cbrt(x); }, Of<mpfr_cbrt>},
    {{Opcode::kCeil}, [](double x, double) { return std::ceil(x); }, Whole<mpfr_ceil>},
    {{Opcode::kCosh}, [](double x, double) { return std::cosh(x); }, Of<mpfr_cosh>},
    {{Opcode::kCosine}, [](double x, double) { return std::cos(x); }, Of<mpfr_cos>},
    {{Opcode::kDigamma}, [](double x, double) { return interp::Digamma(x); }, Of<BigDigamma>},
    {{Opcode::kErf}, [](double x, double) { return std::erf(x); }, Of<mpfr_erf>},
    {{Opcode::kErfInv}, [](double x, double) { return interp::ErfInv(x); }, Of<BigErfInv>},
    {{Opcode::kErfc}, [](double x, double) { return std::erfc(x); }, Of<mpfr_erfc>},
    {{Opcode::kExponential}, [](double x, double) { return std::exp(x); }, Of<mpfr_exp>},
    {{Opcode::kExponentialMinusOne},
     [](double x, double) { return std::expm1(x); },
     Of<mpfr_expm1>},
    {{Opcode::kFloor}, [](double x, double) { return std::floor(x); }, Whole<mpfr_floor>},
    {{Opcode::kLgamma}, [](double x, double) { return interp::Lgamma(x); }, Of<BigLgamma>},
    {{Opcode::kLog}, [](double x, double) { return x < 0 ? NAN : std::log(x); }, Of<mpfr_log>},
    {{Opcode::kLogPlusOne},
     [](double x, double) { return x < -1 ? NAN : std::log1p(x); },
     Of<mpfr_log1p>},
    {{Opcode::kLogistic}, [](double x, double) { return Logistic(x); }, Of<BigLogistic>},
    {{Opcode::kNegate}, [](double x, double) { return -x; }, Of<mpfr_neg>},
    {{Opcode::kRoundNearestAfz}, [](double x, double) { return std::round(x); }, Whole<mpfr_round>},
    {{Opcode::kRoundNearestEven},
     [](double x, double) { return std::nearbyint(x); },
     Whole<mpfr_roundeven>},
    {{Opcode::kRsqrt},
     [](double x, double) { return 1 / std::sqrt(x); },
     [](Big& b, double) {
       mpfr_sqrt(b.value, b.value, kRound);
       mpfr_ui_div(b.value, 1, b.value, kRound);
     }},
    {{Opcode::kSign},
     [](double x, double) { return x > 0   ? 1
                                   : x < 0 ? -1
                                           : x; },
     [](Big& b, double) {
       if (!mpfr_zero_p(b.value) && !mpfr_nan_p(b.value)) {
         mpfr_set_si(b.value, mpfr_sgn(b.value), kRound);
       }
     }},
    {{Opcode::kSine}, [](double x, double) { return std::sin(x); }, Of<mpfr_sin>},
    {{Opcode::kSinh}, [](double x, double) { return std::sinh(x); }, Of<mpfr_sinh>},
    {{Opcode::kSqrt}, [](double x, double) { return std::sqrt(x); }, Of<mpfr_sqrt>},
    {{Opcode::kTan}, [](double x, double) { return std::tan(x); }, Of<mpfr_tan>},
    {{Opcode::kTanh}, [](double x, double) { return std::tanh(x); }, Of<mpfr_tanh>},
};

const MathFunction kBinary[] = {
    {{Opcode::kHypot, 2},
     // A NaN that is signalling would make one of infinity.
     [](double x, double y) {
       return std::hypot(std::isnan(x) ? NAN : x, std::isnan(y) ? NAN : y);
     },
     OfTwo<mpfr_hypot>},
    {{Opcode::kAtan2, 2}, [](double x, double y) { return std::atan2(x, y); }, OfTwo<mpfr_atan2>},
    {{Opcode::kPower, 2},
     // What is no quiet NaN would make one of 1.
     [](double x, double y) { return std::pow(std::isnan(x) ? NAN : x, std::isnan(y) ? NAN : y); },
     OfTwo<mpfr_pow>},
    {{Opcode::kRemainder, 2}, [](double x, double y) { return std::fmod(x, y); }, OfTwo<mpfr_fmod>},
};

}  // namespace

Expected<double> Big::Rounded() {
  Expected<double> e;
  e.value = mpfr_get_d(value, kRound);
  if (mpfr_nan_p(value) || mpfr_inf_p(value)) return e;
  if (std::isinf(e.value)) {
    // Any rest says that the infinity is not exact.
    e.rest = std::numeric_limits<double>::min();
    return e;
  }
  int exponent = e.value == 0 ? -1022 : std::max(std::ilogb(e.value), -1022);
  mpfr_sub_d(other, value, e.value, kRound);
  mpfr_mul_2si(other, other, 52 - exponent, kRound);
  e.rest = mpfr_get_d(other, kRound);
  return e;
}

void PrintTo(const MathFunction& f, std::ostream* to) { *to << f.op.name(); }

std::string TestNameOf(const MathFunction& f) {
  std::string name = f.op.name();
  for (char c : {'-', '.', ' '}) std::replace(name.begin(), name.end(), c, '_');
  return name;
}

std::span<const MathFunction> UnaryMathFunctions() { return kUnary; }
std::span<const MathFunction> BinaryMathFunctions() { return kBinary; }

}  // namespace kiln::testing

#include "interp/special.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace kiln::interp {
namespace {

template <typename T>
using Limits = std::numeric_limits<T>;

// Terms of a series below this fraction of its sum are negligible.
template <typename T>
constexpr T kNothing = Limits<T>::epsilon() / 128;
// The threshold of the asymptotic series for the gamma function's family.
template <typename T>
constexpr T kLarge = Limits<T>::digits <= 53 ? 12 : 24;
// Bernoulli's numbers of even index, from B_2 on.
template <typename T>
constexpr T kBernoulli[] = {T(1) / 6,         T(-1) / 30,      T(1) / 42,
                            T(-1) / 30,       T(5) / 66,       T(-691) / 2730,
                            T(7) / 6,         T(-3617) / 510,  T(43867) / 798,
                            T(-174611) / 330, T(854513) / 138, T(-236364091) / 2730};

template <std::floating_point T>
bool IsWhole(T x) {
  return x == std::floor(x);
}
template <std::floating_point T>
bool IsOdd(T x) {
  return std::fmod(x, T(2)) != 0;
}

// std::lgamma sets a global variable.
double LogGamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}
long double LogGamma(long double x) {
  int sign;
  return ::lgammal_r(x, &sign);
}

// psi(x) = psi(x + n) - sum 1 / (x + k), and psi(x) ~ log(x) - 1/(2x) - sum B_2k / (2k x^2k).
template <std::floating_point T>
T DigammaOfPositive(T x) {
  T sum = 0;
  for (; x < kLarge<T>; x += 1) sum += 1 / x;
  T square = 1 / (x * x), power = 1, series = 0, index = 0;
  for (T bernoulli : kBernoulli<T>) {
    power *= square;
    index += 2;
    series += bernoulli / index * power;
  }
  return std::log(x) - 1 / (2 * x) - series - sum;
}

// Hurwitz's zeta function for q > 0, times q^s if it is to be scaled, by Euler's and Maclaurin's
// formula: with a = q + n
//   sum_{k < n} (q + k)^-s + a^-s (a / (s - 1) + 1/2 + sum B_2j / (2j)! s (s + 1) ... (s + 2j - 2)
//   a^(1 - 2j))
template <std::floating_point T>
T ZetaOfPositive(T s, T q, bool scaled) {
  auto power = [&](T n) { return scaled ? std::exp(-s * std::log1p(n / q)) : std::pow(q + n, -s); };
  T n = 0, sum = 0;
  // The series needs a large relative to s, too; but for large s few terms matter.
  for (; q + n < kLarge<T> || q + n < 2 * s; n += 1) {
    T term = power(n);
    sum += term;
    // Next to 1 small terms are many.
    if (s >= 2 && term <= sum * kNothing<T>) return sum;
  }
  // factor is s ... (s + 2j - 2) a^(1 - 2j).
  T a = q + n, factor = s / a, factorial = 2, series = 0, twice = 2;
  for (T bernoulli : kBernoulli<T>) {
    series += bernoulli / factorial * factor;
    factor *= (s + twice - 1) / a * ((s + twice) / a);
    factorial *= (twice + 1) * (twice + 2);
    twice += 2;
  }
  return sum + power(n) * (a / (s - 1) + T(0.5) + series);
}

}  // namespace

template <std::floating_point T>
T Erfc(T x) {
  return std::erfc(x);
}

template <std::floating_point T>
T Lgamma(T x) {
  return LogGamma(x);
}

template <std::floating_point T>
T Digamma(T x) {
  if (std::isnan(x) || x == Limits<T>::infinity()) return x;
  if (x == 0) return -Limits<T>::infinity();
  if (x < 0 && IsWhole(x)) return Limits<T>::quiet_NaN();
  if (x > 0) return DigammaOfPositive(x);
  // psi(x) = psi(1 - x) - pi / tan(pi x), where whole turns are taken off exactly.
  constexpr T pi = std::numbers::pi_v<T>;
  return DigammaOfPositive(1 - x) - pi / std::tan(pi * (x - std::round(x)));
}

// Winitzki's formula, and Halley's iteration on erf or, near 1, on erfc.
template <std::floating_point T>
T ErfInv(T x) {
  constexpr T pi = std::numbers::pi_v<T>, ratio = T(0.147);
  T a = std::fabs(x);
  if (a == 0) return x;
  if (a > 1 || std::isnan(a)) return Limits<T>::quiet_NaN();
  if (a == 1) return std::copysign(Limits<T>::infinity(), x);
  T w = std::log1p(-a * a), part = 2 / (pi * ratio) + w / 2;
  // The formula has a difference of roots that cancels for small a; its inverse has a sum.
  T y = std::sqrt(-w / ratio / (std::sqrt(part * part - w / ratio) + part));
  // The initial relative error is at most a hundredth, then its third power.
  for (int digits = 5; digits < Limits<T>::digits; digits *= 3) {
    T error = a < T(0.5) ? std::erf(y) - a : (1 - a) - std::erfc(y);
    T newton = error * std::exp(y * y) * std::sqrt(pi) / 2;
    y -= newton / (1 + y * newton);
  }
  return std::copysign(y, x);
}

// I_1(x) = sum (x/2)^(2k + 1) / (k! (k + 1)!), and for large ones e^-x I_1(x) ~
// (1 - 3 / (8x) + ...) / sqrt(2 pi x), where each term is the one before times
// ((2k - 1)^2 - 4) / (8 k x).
template <std::floating_point T>
T BesselI1e(T x) {
  T a = std::fabs(x);
  if (std::isnan(a)) return x;
  T result;
  if (a < 40) {
    T term = a / 2, sum = term;
    for (T k = 1; term > sum * kNothing<T>; k += 1) {
      term *= a * a / (4 * k * (k + 1));
      sum += term;
    }
    result = sum * std::exp(-a);
  } else {
    T term = 1, sum = 1;
    for (T k = 1; std::fabs(term) > kNothing<T> && k < 64; k += 1) {
      T odd = 2 * k - 1;
      term *= (odd * odd - 4) / (8 * k * a);
      sum += term;
    }
    result = sum / std::sqrt(2 * std::numbers::pi_v<T>) / std::sqrt(a);
  }
  return std::copysign(result, x);
}

template <std::floating_point T>
T Zeta(T s, T q) {
  constexpr T infinity = Limits<T>::infinity(), nan = Limits<T>::quiet_NaN();
  if (std::isnan(s) || std::isnan(q) || s < 1) return nan;
  if (s == 1) return infinity;
  if (q > 0) {
    // For infinite q the sum is 0; for infinite s the terms of 1 or below remain.
    if (q == infinity) return 0;
    if (s == infinity) return q > 1 ? 0 : q == 1 ? 1 : infinity;
    return ZetaOfPositive(s, q, false);
  }
  if (!IsWhole(s) || s == infinity) return nan;
  bool odd = IsOdd(s);
  if (IsWhole(q)) return odd ? nan : infinity;
  // The sum over all integers k, also below 0, is the same for q and for its distance r from the
  // nearest integer; the additional terms are zeta(s, 1 - q), with the sign of s.
  T r = q - std::round(q), sign = odd ? -1 : 1;
  T result = std::pow(r, -s);
  if (std::isinf(result)) return result;
  result += ZetaOfPositive(s, 1 + r, false);
  if (r == q) return result;
  return result + sign * (ZetaOfPositive(s, 1 - r, false) - ZetaOfPositive(s, 1 - q, false));
}

// (-1)^(n + 1) n! zeta(n + 1, x).
template <std::floating_point T>
T Polygamma(T order, T x) {
  if (!(order >= 0) || !IsWhole(order) || std::isnan(x)) return Limits<T>::quiet_NaN();
  if (order == 0) return Digamma(x);
  if (order == Limits<T>::infinity()) return Limits<T>::quiet_NaN();
  T s = order + 1, sign = IsOdd(order) ? 1 : -1;
  if (x == Limits<T>::infinity()) return sign * 0;
  T factorial = std::tgamma(s), zeta = Zeta(s, x);
  if (x > 0 && std::isfinite(x) && !(std::isfinite(factorial) && std::isnormal(zeta))) {
    // One factor may overflow or the other underflow, while their product need not.
    return sign * std::exp(LogGamma(s) - s * std::log(x)) * ZetaOfPositive(s, x, true);
  }
  return sign * factorial * zeta;
}

#define KILN_INSTANTIATE(T)   \
  template T BesselI1e(T);    \
  template T Digamma(T);      \
  template T ErfInv(T);       \
  template T Erfc(T);         \
  template T Lgamma(T);       \
  template T Polygamma(T, T); \
  template T Zeta(T, T);
KILN_INSTANTIATE(double)
KILN_INSTANTIATE(long double)
#undef KILN_INSTANTIATE

}  // namespace kiln::interp

// Complex numbers to hold functions against: of all sizes, and close to where they are hard.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

namespace kiln::testing {

// Seeded numbers with parts of T. The next one is of a kind that is drawn, too.
template <typename T>
class ComplexSamples {
 public:
  using Complex = std::complex<T>;
  using Limits = std::numeric_limits<T>;

  explicit ComplexSamples(uint64_t seed) : random_(seed) {}

  // From -1 to 1.
  double Unit() { return static_cast<double>(random_() >> 11) * 0x1p-52 - 1; }
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  T Sign(T x) { return Below(2) ? x : -x; }
  // Of the size of 2^low to 2^high, of any sign.
  T Sized(double low, double high) {
    const double exponent = low + (high - low) * (Unit() + 1) / 2;
    const int whole = static_cast<int>(std::floor(exponent));
    return Sign(static_cast<T>(std::ldexp(std::exp2(exponent - whole), whole)));
  }
  // Of any size at all, finite.
  T Any() {
    T x = Sized(Limits::min_exponent - Limits::digits, Limits::max_exponent);
    return std::isfinite(x) ? x : Limits::max();
  }
  // A distance that is small by any measure.
  T Near() { return Sized(-1.5 * Limits::digits, 0); }
  T Round(long double x) { return static_cast<T>(x); }
  T Special() {
    const T values[] = {0,
                        1,
                        2,
                        Limits::denorm_min(),
                        Limits::min(),
                        Limits::max(),
                        Limits::epsilon(),
                        std::sqrt(Limits::max()),
                        std::sqrt(Limits::min()),
                        1 - Limits::epsilon() / 2,
                        1 + Limits::epsilon(),
                        T{0.5},
                        T{1.5707963267948966},
                        T{3.1415926535897932},
                        T{50},
                        T{88.5},
                        T{709.5},
                        T{711}};
    return Sign(values[Below(static_cast<int>(std::size(values)))]);
  }
  // A finite part, where `with_infinite` infinities and NaNs as well.
  T SpecialOf(bool with_infinite) {
    if (!with_infinite || Below(3)) return Special();
    return Sign(Below(3) ? Limits::infinity() : Limits::quiet_NaN());
  }

  Complex Next() {
    constexpr long double kPi = std::numbers::pi_v<long double>;
    const long double angle = kPi * Unit();
    switch (Below(kKinds)) {
      case 0:
        return {Any(), Any()};
      case 1:
        return {Sized(-12, 12), Sized(-12, 12)};
      case 2:
        return {static_cast<T>(10 * Unit()), static_cast<T>(10 * Unit())};
      case 3: {  // next to the unit circle, and next to the one around -1
        const long double radius = Below(2) ? 1 : 1 + static_cast<long double>(Near());
        const int shift = Below(2);
        return {Round(radius * std::cos(angle) - shift), Round(radius * std::sin(angle))};
      }
      case 4: {  // next to one of the points where cuts end
        const T x = 1 + Near(), y = Near();
        switch (Below(3)) {
          case 0:
            return {Sign(x), y};
          case 1:
            return {y, Sign(x)};
          default:
            return {Sign(1), y};
        }
      }
      case 5: {  // where the real part of exp(z) - 1 is nearly 0, and of exp(-z) + 1
        const long double y = Below(2) ? 1.5L * Unit() : kPi * (2 * Below(50) + Unit() / 2);
        const T imag = Below(4) ? Round(y) : Sized(-Limits::digits, 0);
        const T real = Round(-std::log(std::fabs(std::cos(static_cast<long double>(imag)))));
        return {Below(3) ? real : -real, imag + (Below(2) ? 0 : Round(kPi))};
      }
      case 6: {  // next to the poles of tan and tanh, and to the zeros of sine and cosine
        const T x = Near(), y = Sign(Round(kPi / 2 * (1 + Below(40)))) + (Below(2) ? 0 : Near());
        return Below(2) ? Complex{x, y} : Complex{y, x};
      }
      case 7: {  // where exponentials leave the range
        const T limit = static_cast<T>(Limits::max_exponent * std::numbers::ln2);
        const T x = Sign(limit * static_cast<T>(1 + 0.6 * Unit()));
        const T y = Below(2) ? Any() : Round(kPi / 2 * Below(5)) + (Below(2) ? 0 : Near());
        return Below(2) ? Complex{x, y} : Complex{y, x};
      }
      case 8: {  // next to the axes and the diagonals
        const T x = Below(2) ? Sized(-12, 12) : Any();
        const T y = Below(2) ? x * Near() : Sign(x * (1 + Near()));
        return Below(2) ? Complex{x, y} : Complex{y, x};
      }
      case 9:
        return {Special(), Below(2) ? Special() : Sized(-12, 12)};
      case 10:
        return {Sized(-12, 12), Special()};
      default: {  // where log(1 + z) is nearly 0: x = -y^2 / 2
        const long double y = Sized(-Limits::digits, 0);
        const T imag = Round(y);
        return {Round(std::sqrt(1 - static_cast<long double>(imag) * imag) - 1), imag};
      }
    }
  }
  // Two infinities, NaNs, zeros and others.
  Complex NextSpecial() { return {SpecialOf(true), SpecialOf(true)}; }

 private:
  static constexpr int kKinds = 12;
  std::mt19937_64 random_;
};

}  // namespace kiln::testing

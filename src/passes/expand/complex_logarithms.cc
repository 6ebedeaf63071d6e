// Functions by log: log(z) = log|z| + i arg(z).
#include "passes/expand/complex_functions.h"

namespace kiln::passes::expand {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

// log(high + low): what has been lost of an operand near 1 counts, and elsewhere it does not.
Real LogOf(Pair x) {
  const Truth near = Abs(x.high - 1) < 0.5;
  return Log(x.high) + Select(near, x.low / x.high, 0);
}

// The angle of a point. Parts of f32 give one as good as f32's own.
Real ArgumentOf(Real y, Real x, bool is_double) {
  if (is_double) return Atan2(y, x);
  return Atan2(y.To(ElementType::kF32), x.To(ElementType::kF32)).To(ElementType::kF64);
}

// x^2 + y^2. Squares of 24 bits are exact in f64.
Pair SumOfSquares(Real x, Real y, bool is_double) {
  if (!is_double) return FastSum(x * x, y * y);
  const Pair xx = Square(x), yy = Square(y);
  return SumOf({xx.high, yy.high, xx.low, yy.low}, true);
}

// A factor, a power of two, against overflow and underflow of a point's squares; and its part of
// the logarithm, to be added back.
struct Scaled {
  Truth any;
  Real scale, log;
};
Scaled ScaledDown(Real larger) {
  const Truth large = larger > 0x1p500, small = larger < 0x1p-500;
  const Real one = larger.Number(1), zero = larger.Number(0);
  return {large | small, Select(large, 0x1p-600, Select(small, 0x1p600, one)),
          Select(large, 600 * kLn2, Select(small, -600 * kLn2, zero))};
}

Real OrInfinite(const Point& z, Real x) {
  return Select((Abs(z.x) == kInfinity) | (Abs(z.y) == kInfinity), kInfinity, x);
}

// log(x^2 + y^2) / 2
Real LogOfSize(const Point& z) {
  const Real a = Abs(z.x), b = Abs(z.y), larger = Max(a, b), smaller = Min(a, b);
  if (!z.is_double) return OrInfinite(z, LogOf(SumOfSquares(larger, smaller, false)) * 0.5);
  const Scaled s = ScaledDown(larger);
  const Pair square = SumOfSquares(larger * s.scale, smaller * s.scale, true);
  return OrInfinite(z, LogOf(square) * 0.5 + s.log);
}

}  // namespace

Point Logarithm(const Point& z) {
  return {LogOfSize(z), ArgumentOf(z.y, z.x, z.is_double), z.is_double};
}

// log|1 + z| = log(1 + (2x + x^2 + y^2)) / 2
Point LogarithmPlusOne(const Point& z) {
  const Real x = z.x, y = z.y, u = x + 1, angle = ArgumentOf(y, u, z.is_double);
  if (!z.is_double) {
    const Pair square = SumOf({u.Number(1), x + x, y * y, x * x}, false);
    return {OrInfinite(z, LogOf(square) * 0.5), angle, false};
  }
  const Scaled s = ScaledDown(Max(Abs(u), Abs(y)));
  const Pair xx = Square(x), yy = Square(y);
  const Pair square = SumOf({u.Number(1), x + x, yy.high, xx.high, yy.low, xx.low}, true);
  // Where it is exact, or 1 is nothing to it, 1 + x is squared itself.
  const Real ax = u * s.scale, ay = y * s.scale;
  const Pair used = {Select(s.any, ax * ax + ay * ay, square.high), Select(s.any, 0, square.low)};
  return {OrInfinite(z, LogOf(used) * 0.5 + s.log), angle, true};
}

// exp(exponent * log(z))
Point Power(const Point& z, const Point& exponent) {
  const Real c = exponent.x, d = exponent.y;
  const Real log = LogOfSize(z), angle = Atan2(z.y, z.x);
  // A factor of 0 takes no part, also beside an infinity.
  const Truth real = d == 0.0;
  const Real size = c * log - Select(real, 0, d * angle);
  const Real turn = c * angle + Select(real, 0, d * log);
  const Point power = Exponential({size, turn, true});
  const Truth zero = (z.x == 0.0) & (z.y == 0.0);
  const Truth one = real & (c == 0.0), none = zero & real & (c > 0.0);
  return {Select(one, 1, Select(none, 0, power.x)), Select(one | none, 0, power.y), z.is_double};
}

}  // namespace kiln::passes::expand

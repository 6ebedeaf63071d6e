// Hyperbolic and trigonometric functions: sin(z) = -i sinh(iz), cos(z) = cosh(iz), tan(z) = -i
// tanh(iz).
#include "passes/expand/complex_exponentials.h"

namespace kiln::passes::expand {
namespace {

Point TimesI(const Point& z) { return {-z.y, z.x, z.is_double}; }
Point OverI(const Point& z) { return {z.y, -z.x, z.is_double}; }

Truth IsInfinite(Real x) { return Abs(x) == kInfinity; }

// p cosh(x) and q sinh(x).
struct Products {
  Real cosh, sinh;
};
Products HyperbolicTimes(Real x, Real p, Real q, bool is_double) {
  if (!is_double) return {Cosh(x) * p, Sinh(x) * q};
  const Real size = Abs(x);
  // e^|x| takes the place of twice both where it is large.
  const Growth growth = GrowthOf(size, 0.5);
  const Real e = Exp(growth.x);
  const Real cosh = e + Select(growth.large, 0, 1 / e);
  const Real sinh = Select(growth.large, WithSign(e, x), Sinh(x) * 2);
  return {growth.Times(cosh, p), growth.Times(sinh, q)};
}

}  // namespace

// sinh(x) cos(y) + i cosh(x) sin(y)
Point HyperbolicSine(const Point& z) {
  const Circle turn = CircleAt(z.y, z.is_double);
  const Products p = HyperbolicTimes(z.x, turn.sin, turn.cos, z.is_double);
  // With an infinite or NaN angle, zeros and infinities stay as they are.
  const Truth no_angle = z.y - z.y != 0.0;
  const Truth keeps = no_angle & ((z.x == 0.0) | IsInfinite(z.x));
  return {Select(keeps, z.x, p.sinh), Select(z.y == 0.0, z.y, p.cosh), z.is_double};
}

// cosh(x) cos(y) + i sinh(x) sin(y)
Point HyperbolicCosine(const Point& z) {
  const Circle turn = CircleAt(z.y, z.is_double);
  const Products p = HyperbolicTimes(z.x, turn.cos, turn.sin, z.is_double);
  const Truth no_angle = z.y - z.y != 0.0;
  const Truth zero = (p.sinh != p.sinh) & ((z.x == 0.0) | (z.y == 0.0));
  return {Select(no_angle & IsInfinite(z.x), kInfinity, p.cosh),
          Select(zero, ZeroOf(z.x) * WithSign(z.y.Number(1), z.y), p.sinh), z.is_double};
}

// With e = exp(-2 |x|) the parts' sizes are (1 - e)(1 + e) and 4 e cos(y) sin(y), over
// |1 + e exp(2iy)|^2 = (1 - e)^2 + 4 e cos(y)^2.
Point HyperbolicTangent(const Point& z) {
  const Real size = Abs(z.x);
  Real re = size, im = size;
  if (z.is_double) {
    // Squares double the errors of their factors.
    const ExponentialPair exp = ExponentialOf(Max(size * -2, size.Number(-1200)), Digits::kFew);
    const CirclePair turn = CircleOf(z.y);
    const Pair mantissa = FastSum(size.Number(1), exp.less_one.high);
    const Pair m = {mantissa.high, mantissa.low + exp.less_one.low};
    // As small as e matters beside 1.
    const Real power = PowerOfTwo(Max(exp.k, size.Number(-200)));
    const Pair e = m * power, rest = -LessOne(exp, power), cc = Squared(turn.cos);
    const Pair square = Squared(rest) + e * cc * 4;
    const Pair sum = FastSum(size.Number(1), e.high);
    // Products of subnormal numbers are none of pairs.
    re = Quotient(rest * 0x1p128 * Pair{sum.high, sum.low + e.low}, square) * 0x1p-128;
    const Pair product = turn.cos * (turn.sin * 0x1p128);
    im = TimesPowerOfTwo(Quotient(m * product, square), exp.k - 126);
  } else {
    const Real x = size * -2, e = Exp(x), rest = -Expm1(x), cos = Cos(z.y), sin = Sin(z.y);
    const Real twice = cos + cos, ec = e * twice, square = rest * rest + ec * twice;
    re = rest * (e + 1) / square;
    im = ec * (sin + sin) / square;
  }
  // An infinite real part gives 1. The imaginary part is then 0, even with an infinite or NaN
  // angle.
  const Truth infinite = size == kInfinity;
  const Truth zero = (z.y == 0.0) | (infinite & (im != im));
  return {WithSign(Select(infinite, 1, Select(size == 0.0, size, re)), z.x),
          Select(zero, ZeroOf(z.y), im), z.is_double};
}

Point Sine(const Point& z) { return OverI(HyperbolicSine(TimesI(z))); }
Point Cosine(const Point& z) { return HyperbolicCosine(TimesI(z)); }
Point Tangent(const Point& z) { return OverI(HyperbolicTangent(TimesI(z))); }

}  // namespace kiln::passes::expand

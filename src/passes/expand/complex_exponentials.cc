// Functions by exp: exp(x + iy) = e^x (cos(y) + i sin(y)).
#include "passes/expand/complex_exponentials.h"

namespace kiln::passes::expand {

Circle CircleAt(Real angle, bool is_double) {
  if (is_double) return {Cos(angle), Sin(angle)};
  const Real y = angle.To(ElementType::kF32);
  return {Cos(y).To(ElementType::kF64), Sin(y).To(ElementType::kF64)};
}

// Beyond kLimit e^x is e^(x - kShift) kRest 2^128. x - kShift is exact. kRest is closer to its
// exact value than other choices would be (0.0009 of a unit). e^(x - kShift) overflows where the
// result overflows even with the smallest factor.
Growth GrowthOf(Real x, double factor) {
  constexpr double kLimit = 709, kShift = 745.3017578125, kRest = 0x1.2efeb55e182b1p+947;
  const Truth large = x > kLimit;
  return {large, Select(large, x - kShift, x), Select(large, 0x1p128, x.Number(1)),
          Select(large, factor * kRest, x.Number(factor))};
}

Point Exponential(const Point& z) {
  const Circle turn = CircleAt(z.y, z.is_double);
  if (!z.is_double) {
    const Real size = Exp(z.x);
    return {size * turn.cos, Select(z.y == 0.0, z.y, size * turn.sin), false};
  }
  const Growth growth = GrowthOf(z.x);
  const Real size = Exp(growth.x);
  return {growth.Times(size, turn.cos), Select(z.y == 0.0, z.y, growth.Times(size, turn.sin)),
          true};
}

namespace {

// e^-size - 1 and 1 - |cos(y)|, for differences of the two that are next to 0: of these as many
// digits are lost as parts have. Where `holds` does not, cos(y) is of the other sign or either is
// far from 1.
struct Defects {
  Truth holds;
  ExponentialPair exp;
  Pair exp_less, cos_less;
};
Defects DefectsOf(Real size, Real y, bool beyond, bool is_double) {
  const Digits digits = is_double ? Digits::kAll : Digits::kFew;
  const Truth small = Abs(size) < 40.0;
  const Pair angle = AngleOf(y, beyond);
  const ExponentialPair exp = ExponentialOf(Select(small, -size, 0), digits);
  return {small & (Abs(angle.high) < 1.6) & (Abs(y) < 0x1p45), exp, LessOne(exp, PowerOfTwo(exp.k)),
          CosineLessOne(angle, digits)};
}

}  // namespace

// e^x cos(y) - 1 = (e^x - 1) cos(y) - 2 sin(y / 2)^2, and = e^x ((1 - e^-x) - (1 - cos(y))).
Point ExponentialMinusOne(const Point& z) {
  const Real x = z.x, y = z.y, half = Sin(y * 0.5), less = Expm1(x), cos = Cos(y), sin = Sin(y);
  Real re = less * cos - (half + half) * half, im = y, size = Exp(x);
  if (z.is_double) {
    const Growth growth = GrowthOf(x);
    const Real grown = Exp(growth.x);
    re = Select(growth.large, growth.Times(grown, cos), re);
    im = growth.Times(grown, sin);
  } else {
    im = size * sin;
  }
  const Defects d = DefectsOf(x, y, false, z.is_double);
  re = Select(d.holds, size * (d.cos_less - d.exp_less).high, re);
  if (z.is_double) {
    // x - y^2 / 2, where the square may be too small a number.
    const Pair square = Square(y * 0x1p300) * 0.5;
    const Real sum = (Pair{x * 0x1p600, x.Number(0)} - square).high * 0x1p-600;
    re = Select((Abs(x) < 0x1p-400) & (Abs(y) < 0x1p-200), sum, re);
  }
  const Truth real = y == 0.0;
  return {Select(real, less, re), Select(real, y, im), z.is_double};
}

// With e = exp(-|x|): (1 + e cos(y) + i e sin(y)) / |1 + e exp(iy)|^2, and e (e + cos(y) + i
// sin(y)) / |1 + e exp(iy)|^2 below 0. 1 + cos(y) is 2 cos(y / 2)^2, and the divisor (1 - e)^2 + 4
// e cos(y / 2)^2, which keep their digits next to the poles. e + cos(y) is the difference of 1 +
// cos(y) and 1 - e, too.
Point Logistic(const Point& z) {
  const Real size = Abs(z.x), y = z.y, half = y * 0.5;
  const Truth negative = z.x < 0.0;
  const Defects d = DefectsOf(size, y, true, z.is_double);
  const Real difference = (d.exp_less - d.cos_less).high;
  const Real cos = Cos(y);
  const Truth next_to_pole = ((cos < 0.0) & (size < 1.0)) | (size < 0.25);
  auto far = [&](Real e, Real less) { return Select(next_to_pole, less, cos + e); };
  if (!z.is_double) {
    const Real e = Exp(-size), rest = -Expm1(-size), s = Sin(half), c = Cos(half);
    const Real twice = c + c, ec = e * twice, square = rest * rest + ec * twice;
    const Real below = e * Select(d.holds, difference, far(e, twice * c - rest));
    const Real above = rest + ec * c;
    return {Select(negative, below, above) / square, ec * s / square, false};
  }
  // The same with enough digits for the sums and products of it. Where 1 - e is 1 nothing is lost,
  // and where e would be subnormal it is not.
  const Real extra = Exp(Min(600 - size, size.Number(0))), e = Exp(-Min(size, size.Number(600)));
  const CirclePair turn = CircleOf(half);
  const Pair rest = Select(size < 40.0, -d.exp_less, {size.Number(1), size.Number(0)});
  const Pair ec = Pair{e, e.Number(0)} * turn.cos, ecc = ec * turn.cos;
  const Pair square = rest * rest + ecc * 4, above = rest + ecc * 2;
  const Pair cc = Squared(turn.cos) * 2;
  const Real sum = Select(d.holds, difference, far(e, (cc - rest).high));
  const Real below = Quotient(Product(e, sum), square) * extra;
  return {Select(negative, below, Quotient(above, square)),
          Quotient(ec * turn.sin * 2, square) * extra, true};
}

}  // namespace kiln::passes::expand

// Inverse trigonometric and inverse hyperbolic functions.
#include "passes/expand/complex_functions.h"

namespace kiln::passes::expand {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1, kPi = 0x1.921fb54442d18p1;

// log(1 + x), or log(x) + `power` where `large`, x > 0. The rounding error of 1 + x is added.
Real LogPlusOne(Real x, Truth large, double power) {
  const Pair sum = Sum(x.Number(1), x);
  return Log(Select(large, x, sum.high)) + Select(large, power, sum.low / sum.high);
}
Real LogPlusOne(Real x) { return x.Of(Opcode::kLogPlusOne); }

// T. Hull, T. Fairgrieve, P. Tang, Implementing the Complex Arcsine and Arccosine Functions using
// Exception Handling. For x, y >= 0, r = |z + 1|, s = |z - 1| and a = (r + s) / 2, of acos(z) the
// real part is atan(root / x), root^2 = a^2 - x^2, and the imaginary one's size log(a +
// sqrt(a^2 - 1)). Both differences are sums of
//   p = y^2 / (r + x + 1),   q = s + |x - 1|,   y^2 / q,
// none of which cancels.
struct Arc {
  Real root, log;
};

Arc ArcOfSingle(Real x, Real y) {
  const Real above = x + 1, below = Abs(x - 1), square = y * y;
  const Real r = Sqrt(above * above + square), s = Sqrt(below * below + square);
  const Real a = (r + s) * 0.5, p = square / (r + above), q = s + below;
  const Real rest = Select(q == 0.0, 0, square / q);
  const Truth inside = x <= 1.0;
  const Real less_one = (p + Select(inside, rest, q)) * 0.5;
  const Real less_x = (p + Select(inside, q, rest)) * 0.5;
  return {Sqrt((a + x) * less_x), LogPlusOne(less_one + Sqrt(less_one * (a + 1)))};
}

// Where powers overflow, 1 is negligible. Where y is negligible beside |x - 1|, the first
// difference is linear in y.
Arc ArcOfDouble(Real full_x, Real full_y) {
  const Truth large = Max(full_x, full_y) > 0x1p250;
  const Real scale = Select(large, 0x1p-600, full_x.Number(1));
  const Real one = Select(large, 0, full_x.Number(1));
  const Real x = full_x * scale, y = full_y * scale;
  const Real above = x + one, below = Abs(x - one), square = y * y;
  const Real r = Sqrt(above * above + square), s = Max(Sqrt(below * below + square), y);
  const Real a = (r + s) * 0.5, p = square / (r + above), q = s + below;
  const Real rest = Select(q == 0.0, 0, y * (y / q));
  const Truth inside = x <= one;
  // Twice a - 1, as half of a subnormal y may be 0.
  const Real less_one = p + Select(inside, rest, q);
  const Truth flat = y < below * 0x1p-60;
  const Real axis = Sqrt(below * above);
  const Real sum = Select(flat, Select(inside, y / axis, below + axis),
                          less_one * 0.5 + Sqrt((a + one) * 0.5 * less_one));
  // root is the real part of sqrt(1 - z^2) = sqrt(t - iv), which fewer roundings make than
  // differences of a. Where v is so small that its square is not exact, one of both is far smaller
  // than the other.
  const Real zero = x.Number(0);
  const Real t = ((Pair{one, zero} - Square(x)) + Square(y)).high, v = (x + x) * y;
  const Real size = Select(v < 0x1p-480, Max(Abs(t), v), Sqrt((Square(t) + Square(v)).high));
  const Real w = Sqrt((size + Abs(t)) * 0.5);
  const Real root = Select(t < 0.0, Quotient(Product(x, y), {w, zero}), w);
  return {Select(large, full_y, root), LogPlusOne(sum, large, 600 * kLn2)};
}

Arc ArcOf(Real x, Real y, bool is_double) {
  Arc arc = is_double ? ArcOfDouble(x, y) : ArcOfSingle(x, y);
  // An infinity has no finite distance and an angle as its parts have; that of 0 is known beside a
  // NaN.
  const Truth infinite = (x == kInfinity) | (y == kInfinity);
  arc.log = Select(infinite, kInfinity, arc.log);
  arc.root = Select(infinite, y, Select(x == 0.0, 1, arc.root));
  return arc;
}

// log(1 + 4c / (x^2 + y^2)) for c >= 0, with c near 1 where x and y are small. x and y are
// differences; in f64 their rounding errors matter.
Real LogOfRatio(Real c, Pair x, Pair y, bool is_double) {
  if (!is_double) return LogPlusOne(c * 4 / (x.high * x.high + y.high * y.high));
  const Real larger = Max(Abs(x.high), Abs(y.high));
  const Truth small = larger < 0x1p-480;
  const Truth large = larger > 0x1p500;
  const Real scale = Select(small, 0x1p700, Select(large, 0x1p-600, c.Number(1)));
  const Real sum = (Squared(x * scale) + Squared(y * scale)).high;
  const Real square = Select(larger == kInfinity, larger, sum);
  // For large x and y the operand of the logarithm is small, and so is the logarithm.
  const Real back = Select(large, scale, c.Number(1));
  return LogPlusOne(c / square * 4 * back * back, small, 1400 * kLn2);
}

// A number of the sign of ab + cd, which may be too large for a number, or too small: of f64 only.
Real SideOfSum(Real a, Real b, Real c, Real d) {
  Real exponent = a.Number(0);
  auto mantissa = [&](Real x, double sign) {
    const Real scale = InversePowerOfTwo(Abs(x));
    exponent = exponent - ExponentOf(scale) * sign;
    return x * scale;
  };
  const Real l = mantissa(a, 1), r = mantissa(b, 1), v = mantissa(c, -1), w = mantissa(d, -1);
  // Of the largest and the least mantissas there are, 2 and 2^-52, products are 2^106 times apart.
  const Real least = a.Number(-200), most = a.Number(200);
  return SumOfProducts(l * PowerOfTwo(Max(Min(exponent, most), least)), r, v, w, true);
}

// x - y, in f64 with its rounding error.
Pair Difference(Real x, Real y, bool is_double) { return is_double ? Sum(x, -y) : Pair{x - y, x}; }

}  // namespace

Point ArcSine(const Point& z) {
  const Arc arc = ArcOf(Abs(z.x), Abs(z.y), z.is_double);
  return {Atan2(z.x, arc.root), WithSign(arc.log, z.y), z.is_double};
}
Point ArcCosine(const Point& z) {
  const Arc arc = ArcOf(Abs(z.x), Abs(z.y), z.is_double);
  return {Atan2(arc.root, z.x), WithSign(arc.log, -z.y), z.is_double};
}
Point HyperbolicArcSine(const Point& z) {
  const Point turned = ArcSine({-z.y, z.x, z.is_double});
  return {turned.y, -turned.x, z.is_double};
}
Point HyperbolicArcCosine(const Point& z) {
  const Arc arc = ArcOf(Abs(z.x), Abs(z.y), z.is_double);
  return {arc.log, WithSign(Atan2(arc.root, z.x), z.y), z.is_double};
}
// log(|1 + z|^2 / |1 - z|^2) / 4, with |1 + z|^2 = |1 - z|^2 + 4x; and half the angle of (1 + z) /
// (1 - z), as the angle of (1 + z) conj(1 - z).
Point HyperbolicArcTangent(const Point& z) {
  const Real x = Abs(z.x), y = z.y;
  const Pair below = Difference(x.Number(1), x, z.is_double);
  Real above = x + 1, left = below.high, by = y, twice = y + y;
  if (z.is_double) {
    const Real scale = Select(Max(x, Abs(y)) > 0x1p500, 0x1p-600, x.Number(1));
    above = above * scale;
    left = left * scale;
    by = y * scale;
    twice = by * (scale + scale);
  }
  const Real angle = Atan2(twice, left * above - by * by) * 0.5;
  const Real log = LogOfRatio(x, below, {y, y.Number(0)}, z.is_double) * 0.25;
  // Infinities are where the axes are.
  const Truth level = Abs(y) == kInfinity, none = level | (x == kInfinity) | (x == 0.0);
  return {WithSign(Select(none, 0, log), z.x), Select(level, WithSign(x.Number(kPi / 2), y), angle),
          z.is_double};
}

// -i log((x + iy) / sqrt(x^2 + y^2)), by p = x + iy and m = x - iy: the root's square is p m, so
// that it is the logarithm of sqrt(p / m) or -sqrt(p / m), by arg(p) and arg(m). With p conj(m) =
// |x|^2 - |y|^2 + 2i Re(x conj(y)) and |p|^2 - |m|^2 = -4 Im(x conj(y)) both parts are exact where
// they are small.
Point Angle(const Point& y, const Point& x) {
  const bool is_double = x.is_double;
  Real a = x.x, b = x.y, c = y.x, d = y.y;
  if (is_double) {
    // To a size at which products of small parts do not vanish.
    const Real scale = InversePowerOfTwo(Max(Max(Abs(a), Abs(b)), Max(Abs(c), Abs(d))), 480);
    for (Real* part : {&a, &b, &c, &d}) *part = *part * scale;
  }
  const Real imag = SumOfProducts(a, c, b, d, is_double) * 2;
  const Real imag_of_square = SumOfProducts(a, b, c, d, is_double) * 2;
  // They may be too small for a number, but their signs matter.
  const Real side = is_double ? SideOfSum(x.x, y.x, x.y, y.y) : imag;
  const Real side_of_square = is_double ? SideOfSum(x.x, x.y, y.x, y.y) : imag_of_square;
  Real excess = SumOfProducts(a, d, -b, c, is_double);
  if (is_double) {
    for (Real* part : {&a, &b, &c, &d}) *part = *part * 0x1p-480;
    excess = excess * 0x1p-960;
  }
  const Pair p_real = Difference(a, d, is_double), p_imag = Difference(b, -c, is_double);
  const Pair m_real = Difference(a, -d, is_double), m_imag = Difference(b, c, is_double);
  const Real angle_p = Atan2(p_imag.high, p_real.high), angle_m = Atan2(m_imag.high, m_real.high);
  // The angle of p conj(m) is the difference of p's and m's up to whole turns. The angle of p m,
  // halved by the root, is their sum. On the negative axis their side decides.
  auto angle_of = [&](Real y, Real side, Real x, Real nearly) {
    const Real angle = Abs(Atan2(is_double ? y * 0x1p-960 : y, x));
    return WithSign(angle, Select(side == 0.0, nearly, side));
  };
  const Real difference = angle_p - angle_m, sum = angle_p + angle_m;
  const Real angle =
      angle_of(imag, side, p_real.high * m_real.high + p_imag.high * m_imag.high, difference);
  const Real angle_of_square = angle_of(imag_of_square, side_of_square,
                                        p_real.high * m_real.high - p_imag.high * m_imag.high, sum);
  auto turns = [](Real radians) { return (radians * (0.5 / kPi)).Of(Opcode::kRoundNearestEven); };
  const Real half_turns = turns(difference - angle) + turns(sum - angle_of_square);
  // Half a turn, up or down, so that it is within one.
  const Truth odd = turns(half_turns * kPi) * 2 != half_turns;
  const Real half = angle * 0.5;
  const Truth positive = (side > 0.0) | ((side == 0.0) & (half > 0.0));
  const Real real = Select(odd, Select(positive, half - kPi, half + kPi), half);
  const Truth of_m = excess < 0.0;
  const Real log = LogOfRatio(Abs(excess), Select(of_m, m_real, p_real),
                              Select(of_m, m_imag, p_imag), is_double);
  return {real, WithSign(log * 0.25, excess), is_double};
}

}  // namespace kiln::passes::expand

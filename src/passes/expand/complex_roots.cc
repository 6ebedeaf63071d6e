// Roots, and functions by the absolute value.
#include <cmath>

#include "passes/expand/complex_functions.h"

namespace kiln::passes::expand {
namespace {

// z * scale, and its absolute value with the square: without overflow, and without loss of the
// larger part.
struct Scaled {
  Real x, y, square, size;
};
Scaled ScaledBy(Real x, Real y, Real scale) {
  x = x * scale;
  y = y * scale;
  const Real square = x * x + y * y;
  return {x, y, square, Sqrt(square)};
}

// The root of a pair of normal numbers, as one.
Pair RootOf(Pair x) {
  const Real root = Sqrt(x.high);
  const Pair square = Square(root);
  return FastSum(root, ((x.high - square.high) - square.low + x.low) / (root + root));
}

Truth IsInfinite(const Point& z) { return (Abs(z.x) == kInfinity) | (Abs(z.y) == kInfinity); }

}  // namespace

Real Size(const Point& z) {
  const Real a = Abs(z.x), b = Abs(z.y);
  Real size = a;
  if (z.is_double) {
    const Real scale = InversePowerOfTwo(Max(a, b));
    size = ScaledBy(a, b, scale).size / scale;
  } else {
    size = Sqrt(a * a + b * b);
  }
  // An infinity beside whatever it is, a NaN too.
  return Select(IsInfinite(z), kInfinity, size);
}

// W. Kahan: u = sqrt((|z| + |x|) / 2) and |y| / 2u are the sizes of the parts; the sign of x
// decides which is which.
Point Root(const Point& z) {
  const Real a = Abs(z.x), b = Abs(z.y);
  Real u = a;
  if (z.is_double) {
    const Real scale = InverseSquareOfPowerOfTwo(Max(a, b));
    const Scaled s = ScaledBy(a, b, scale);
    u = Sqrt((s.size + s.x) * 0.5) / Sqrt(scale);
  } else {
    u = Sqrt((Sqrt(a * a + b * b) + a) * 0.5);
  }
  u = Select(IsInfinite(z), kInfinity, u);
  Real v = Select(u == 0.0, b, b / (u + u));
  v = Select(b == kInfinity, kInfinity, v);
  const Truth left = z.x < 0.0;
  return {Select(left, v, u), WithSign(Select(left, u, v), z.y), z.is_double};
}

// 1 / sqrt(z) = conj(sqrt(z)) / |z|: sqrt((|z| + |x|) / 2) / |z| and |y| / (2 |z| sqrt((|z| + |x|)
// / 2)) are the parts' sizes.
Point InverseRoot(const Point& z) {
  const Real a = Abs(z.x), b = Abs(z.y);
  Real u = a, v = a;
  if (z.is_double) {
    const Real scale = InverseSquareOfPowerOfTwo(Max(a, b));
    const Scaled s = ScaledBy(a, b, scale);
    const Pair square = Square(s.x) + Square(s.y), twice = square * 2;
    const Pair sum = RootOf(square) + Pair{s.x, s.x.Number(0)};
    const Real root = Sqrt(scale);
    u = Sqrt(Quotient(sum, twice)) * root;
    v = s.y * root / Sqrt((twice * sum).high);
  } else {
    const Real square = a * a + b * b, size = Sqrt(square), sum = size + a, twice = square + square;
    u = Sqrt(sum / twice);
    v = b / Sqrt(twice * sum);
  }
  u = Select((a == 0.0) & (b == 0.0), kInfinity, u);
  const Truth left = z.x < 0.0;
  const Real re = Select(left, v, u), im = WithSign(Select(left, u, v), -z.y);
  const Truth infinite = IsInfinite(z);
  return {Select(infinite, 0, re), Select(infinite, ZeroOf(-z.y), im), z.is_double};
}

// The root with a third of z's angle. In f64, where rounding the angle costs too much, a step of
// Newton's follows: w + (z - w^3) / (3 w^2), by w^3 = x (x^2 - 3 y^2) + i y (3 x^2 - y^2).
Point CubeRoot(const Point& z) {
  const Real a = Abs(z.x), b = Abs(z.y), angle = Atan2(z.y, z.x) / 3;
  const Truth infinite = IsInfinite(z);
  if (!z.is_double) {
    const Real size = Select(infinite, kInfinity, Cbrt(Sqrt(a * a + b * b)));
    return {size * Cos(angle), Select(size == 0.0, z.y, size * Sin(angle)), false};
  }
  const Truth large = Max(a, b) > 0x1p500, small = Max(a, b) < 0x1p-500;
  auto by = [&](int power) {
    return Select(large, std::ldexp(1, -power), Select(small, std::ldexp(1, power), a.Number(1)));
  };
  const Scaled s = ScaledBy(z.x, z.y, by(600));
  const Real size = Select(infinite, kInfinity, Cbrt(s.size));
  Real x = size * Cos(angle), y = size * Sin(angle);
  const Pair xx = Square(x), yy = Square(y);
  auto thrice = [](Pair v) -> Pair {
    const Pair sum = FastSum(v.high * 2, v.high);
    return {sum.high, sum.low + v.low * 3};
  };
  const Pair p = xx - thrice(yy), q = thrice(xx) - yy;
  const Pair xp = Product(x, p.high), yq = Product(y, q.high);
  const Real u = (s.x - xp.high) - (xp.low + x * p.low);
  const Real v = (s.y - yq.high) - (yq.low + y * q.low);
  const Real c = xx.high - yy.high, d = x * y * 2, n = xx.high + yy.high, divisor = n * n * 3;
  const Truth plain = infinite | (size == 0.0);
  x = Select(plain, x, x + (u * c + v * d) / divisor) * by(-200);
  y = Select(plain, y, y + (v * c - u * d) / divisor) * by(-200);
  // Scaled down y may lose what the result still has.
  y = Select(b < z.x * 0x1p-60, size * by(-200) / z.x * z.y / 3, y);
  return {x, Select(size == 0.0, z.y, y), true};
}

Point SignOf(const Point& z) {
  Real x = z.x, y = z.y;
  const Real larger = Max(Abs(x), Abs(y));
  if (z.is_double) {
    const Real scale = InversePowerOfTwo(larger);
    x = x * scale;
    y = y * scale;
  }
  const Real size = Select(IsInfinite(z), kInfinity, Sqrt(x * x + y * y));
  const Truth zero = larger == 0.0;
  return {Select(zero, 0, x / size), Select(zero, 0, y / size), z.is_double};
}

}  // namespace kiln::passes::expand

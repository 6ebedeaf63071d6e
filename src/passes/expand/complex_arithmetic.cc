#include "passes/expand/complex_functions.h"

namespace kiln::passes::expand {
namespace {

using ir::Instruction;

Parts SelectParts(Builder& b, Instruction* p, const Parts& yes, const Parts& no) {
  return {b.Select(p, yes.real, no.real), b.Select(p, yes.imag, no.imag)};
}

// By the real parts, and where these are equal by the imaginary ones.
Instruction* Ordered(Builder& b, Direction direction, const Parts& x, const Parts& y) {
  return b.Select(b.Compare(Direction::kEq, x.real, y.real), b.Compare(direction, x.imag, y.imag),
                  b.Compare(direction, x.real, y.real));
}

Parts Spread(Builder& b, const Parts& x, const Shape& shape) {
  if (x.real->shape().rank() == shape.rank()) return x;
  return {b.Spread(shape, x.real), b.Spread(shape, x.imag)};
}

}  // namespace

Parts ComplexNegate(Builder& b, std::span<const Parts> x) {
  return {b.Negate(x[0].real), b.Negate(x[0].imag)};
}

Parts ComplexAdd(Builder& b, std::span<const Parts> x) {
  return {b.Plus(x[0].real, x[1].real), b.Plus(x[0].imag, x[1].imag)};
}

Parts ComplexSubtract(Builder& b, std::span<const Parts> x) {
  return {b.Minus(x[0].real, x[1].real), b.Minus(x[0].imag, x[1].imag)};
}

Parts ComplexMultiply(Builder& b, std::span<const Parts> x) {
  auto product = [&](Instruction* l, Instruction* r) { return b.Times(l, r); };
  return {b.Minus(product(x[0].real, x[1].real), product(x[0].imag, x[1].imag)),
          b.Plus(product(x[0].real, x[1].imag), product(x[0].imag, x[1].real))};
}

Real SumOfProducts(Real a, Real b, Real c, Real d, bool is_double) {
  // Products of 24 bits are exact in f64.
  if (!is_double) return a * b + c * d;
  const Pair first = Product(a, b), second = Product(c, d), sum = Sum(first.high, second.high);
  const Real rest = sum.low + (first.low + second.low);
  return Select(Abs(sum.high) < kInfinity, sum.high + rest, sum.high);
}

namespace {

struct Scaled {
  Point z;
  Real exponent;
};
// The larger part to 2^480, where squares do not overflow, and a part that is far smaller does not
// vanish.
Scaled ScaledDown(const Point& z) {
  const Real scale = InversePowerOfTwo(Max(Abs(z.x), Abs(z.y)), 480);
  return {{z.x * scale, z.y * scale, true}, -ExponentOf(scale)};
}

// (a + bi) / (c + di) = ((ac + bd) + (bc - ad)i) / (c^2 + d^2)
Point Quotient(const Point& n, const Point& d) {
  const bool is_double = d.is_double;
  auto formula = [&](const Point& n, const Point& d, Real square) -> Point {
    return {SumOfProducts(n.x, d.x, n.y, d.y, is_double) / square,
            SumOfProducts(n.y, d.x, -n.x, d.y, is_double) / square, is_double};
  };
  if (!is_double) return formula(n, d, d.x * d.x + d.y * d.y);
  const Scaled over = ScaledDown(n), under = ScaledDown(d);
  // The quotient is large until it gets its exponent. Exponents far below the least number's are
  // not needed.
  const Point& u = under.z;
  const Real square = (Square(u.x * 0x1p-240) + Square(u.y * 0x1p-240)).high;
  const Point q = formula(over.z, u, square);
  const Real e = over.exponent - under.exponent, least = e.Number(-1500);
  const Real exponent = Max(e, least) - 480;
  return {TimesPowerOfTwo(q.x, exponent), TimesPowerOfTwo(q.y, exponent), true};
}

// The results of C's Annex G where both parts are NaN.
Point WithInfinities(const Point& q, const Point& n, const Point& d) {
  auto finite = [](const Point& z) { return (Abs(z.x) < kInfinity) & (Abs(z.y) < kInfinity); };
  auto infinite = [](const Point& z) { return (Abs(z.x) == kInfinity) | (Abs(z.y) == kInfinity); };
  // An infinite part as 1, another one as 0.
  auto boxed = [](const Point& z, Truth p) -> Point {
    auto part = [&](Real x) {
      return Select(p, WithSign(Select(Abs(x) == kInfinity, 1, x.Number(0)), x), x);
    };
    return {part(z.x), part(z.y), true};
  };
  const Truth n_infinite = infinite(n), d_infinite = infinite(d);
  const Point a = boxed(n, n_infinite), c = boxed(d, d_infinite);
  const Real factor = Select(n_infinite, kInfinity, n.x.Number(0));
  const Truth invalid = (q.x != q.x) & (q.y != q.y);
  const Truth one_infinite = invalid & ((n_infinite & finite(d)) | (d_infinite & finite(n)));
  const Truth by_zero = invalid & (d.x == 0.0) & (d.y == 0.0);
  const Real infinity = WithSign(n.x.Number(kInfinity), d.x);
  return {
      Select(by_zero, infinity * n.x, Select(one_infinite, factor * (a.x * c.x + a.y * c.y), q.x)),
      Select(by_zero, infinity * n.y, Select(one_infinite, factor * (a.y * c.x - a.x * c.y), q.y)),
      q.is_double};
}

}  // namespace

Parts ComplexDivide(Builder& b, std::span<const Parts> x) {
  const ElementType type = x[0].real->shape().type();
  auto wide = [&](const Parts& z) -> Point {
    return {Real(b, z.real).To(ElementType::kF64), Real(b, z.imag).To(ElementType::kF64),
            type == ElementType::kF64};
  };
  const Point n = wide(x[0]), d = wide(x[1]);
  const Point q = WithInfinities(Quotient(n, d), n, d);
  return {q.x.To(type).value(), q.y.To(type).value()};
}

Parts ComplexMaximum(Builder& b, std::span<const Parts> x) {
  return SelectParts(b, Ordered(b, Direction::kGt, x[0], x[1]), x[0], x[1]);
}

Parts ComplexMinimum(Builder& b, std::span<const Parts> x) {
  return SelectParts(b, Ordered(b, Direction::kLt, x[0], x[1]), x[0], x[1]);
}

// minimum(maximum(operand, min), max)
Parts ComplexClamp(Builder& b, std::span<const Parts> x) {
  const Shape& shape = x[1].real->shape();
  const Parts raised[] = {x[1], Spread(b, x[0], shape)};
  const Parts lowered[] = {ComplexMaximum(b, raised), Spread(b, x[2], shape)};
  return ComplexMinimum(b, lowered);
}

}  // namespace kiln::passes::expand

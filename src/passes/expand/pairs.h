// Numbers in twice the precision of f64, as sums of two: high + low, where low is at most half a
// unit of high's last place, or little more.
//
// They rely on the following, down to the machine. Every op is rounded to its type. Sums of floats
// are not reordered, and (x + y) - x is not simplified. Multiplications and additions are fused in
// the math library and products of matrices only (docs/numerics.md). There is no op for a fused one
// either, so products split their factors.
#pragma once

#include <span>
#include <vector>

#include "passes/expand/real.h"

namespace kiln::passes::expand {

struct Pair {
  Real high;
  Real low;

  Pair operator-() const { return {-high, -low}; }
};

// x + y, and where |x| >= |y| or x is 0.
Pair Sum(Real x, Real y);
Pair FastSum(Real x, Real y);
// The sum of all terms, as in three times the precision if `thrice` is set.
Pair SumOf(const std::vector<Real>& terms, bool thrice);

// A factor in halves of 26 bits; it must be below 2^995. Products are exact above 2^-960.
struct Halves {
  Real whole, high, low;
};
Halves HalvesOf(Real x);
Pair Product(const Halves& x, const Halves& y);
Pair Product(const Halves& x, double y);
Pair Product(Real x, Real y);
Pair Square(Real x);

Pair operator+(Pair x, Pair y);
inline Pair operator-(Pair x, Pair y) { return x + -y; }
Pair operator*(Pair x, Pair y);
Pair Squared(Pair x);
// By a power of two.
template <typename T>
Pair operator*(Pair x, T y) {
  return {x.high * y, x.low * y};
}
// Rounded to one number.
Real Quotient(Pair x, Pair y);
inline Pair Select(Truth p, Pair yes, Pair no) {
  return {Select(p, yes.high, no.high), Select(p, yes.low, no.low)};
}

// How exact a function is: to 2^-58 of itself, which leaves f64's rounding alone, or to 2^-100.
enum class Digits { kFew, kAll };

// e^x = 2^k (1 + (e^r - 1)), x = k ln2 + r, for |x| up to 2^20.
struct ExponentialPair {
  Real k;
  Pair less_one;
};
ExponentialPair ExponentialOf(Real x, Digits digits);
// e^x - 1 of that, where 2^k is given.
Pair LessOne(const ExponentialPair& e, Real power);

// y less k times 2pi, where k is the nearest integer, or if `half` is set the nearest integer and a
// half; for |y| up to 2^45.
Pair AngleOf(Real y, bool half);
// cos(r) - 1 for |r| < 1.6.
Pair CosineLessOne(Pair r, Digits digits);

// cos and sin to 2^-56 of themselves; beyond 2^45 as they are in f64.
struct CirclePair {
  Pair cos, sin;
};
CirclePair CircleOf(Real y);

}  // namespace kiln::passes::expand

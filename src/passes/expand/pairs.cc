#include "passes/expand/pairs.h"

#include <array>
#include <cmath>

namespace kiln::passes::expand {
namespace {

using ir::Instruction;

constexpr double kSplitter = 0x1p27 + 1;

// 2pi in pieces of 53 bits.
constexpr double kTurn[] = {0x1.921fb54442d18p2, 0x1.1a62633145c07p-52, -0x1.f1976b7ed8fbcp-108};

// The inverse coefficients of exp(x), cos(sqrt(x)) and sin(sqrt(x)) / sqrt(x): n!, and every other
// one of them with signs that take turns. They are exact as far as they are used in pairs.
template <size_t kCount>
constexpr std::array<double, kCount> Factorials(int first, int step, bool alternate) {
  std::array<double, kCount> result = {};
  double factorial = 1;
  int n = 1;
  for (size_t i = 0; i < kCount; ++i) {
    const int upto = first + static_cast<int>(i) * step;
    while (n <= upto) factorial *= n++;
    result[i] = alternate && i % 2 == 1 ? -factorial : factorial;
  }
  return result;
}
constexpr auto kExponential = Factorials<24>(0, 1, false);
constexpr auto kCosine = Factorials<13>(0, 2, true);
constexpr auto kSine = Factorials<10>(1, 2, true);

Real Polynomial(Real x, std::span<const double> divisors) {
  Real sum = x.Number(1 / divisors.back());
  for (size_t n = divisors.size() - 1; n-- > 0;) sum = sum * x + 1 / divisors[n];
  return sum;
}

// The sum of x^n / divisors[n], with the first `wide` terms in pairs.
Pair Series(Pair x, std::span<const double> divisors, size_t wide) {
  const Real tail = Polynomial(x.high, divisors.subspan(wide));
  const Halves factor = HalvesOf(x.high);
  Pair sum = {tail, tail.Number(0)};
  for (size_t n = wide; n-- > 0;) {
    const Pair product = Product(factor, HalvesOf(sum.high));
    Real low = product.low + sum.high * x.low;
    if (n + 1 < wide) low = low + sum.low * x.high;
    const double c = 1 / divisors[n], rest = std::fma(-c, divisors[n], 1.0) / divisors[n];
    const Pair next = FastSum(x.high.Number(c), product.high);
    low = next.low + low;
    sum = {next.high, rest == 0 ? low : low + rest};
  }
  return FastSum(sum.high, sum.low);
}

// y less k * 2pi * part: k an integer of up to 50 bits, or half of one.
Pair LessTurns(Real y, Real k, double part) {
  const Halves factor = HalvesOf(k);
  const Pair first = Product(factor, kTurn[0] * part), second = Product(factor, kTurn[1] * part);
  // y and the first product are near each other, or that is 0.
  const Pair sum = Sum(y - first.high, -first.low), next = Sum(sum.high, -second.high);
  return Sum(next.high, (sum.low + next.low) - (second.low + k * (kTurn[2] * part)));
}

Real Rounded(Real x) { return x.Of(Opcode::kRoundNearestEven); }

}  // namespace

// D. Knuth; T. Dekker.
Pair Sum(Real x, Real y) {
  const Real sum = x + y, part = sum - x;
  return {sum, (x - (sum - part)) + (y - part)};
}

Pair FastSum(Real x, Real y) {
  const Real sum = x + y;
  return {sum, y - (sum - x)};
}

Pair SumOf(const std::vector<Real>& terms, bool thrice) {
  // T. Ogita, S. Rump, S. Oishi: the errors of the sums are summed, too, and then the errors of
  // these sums.
  std::vector<Real> lost;
  auto sum = [&](const std::vector<Real>& xs) {
    Real total = xs[0];
    lost.clear();
    for (size_t i = 1; i < xs.size(); ++i) {
      const Pair next = Sum(total, xs[i]);
      total = next.high;
      lost.push_back(next.low);
    }
    return total;
  };
  auto plain = [](const std::vector<Real>& xs) {
    Real total = xs[0];
    for (size_t i = 1; i < xs.size(); ++i) total = total + xs[i];
    return total;
  };
  const Real total = sum(terms);
  if (!thrice || lost.size() < 2) return Sum(total, plain(lost));
  const Real rest = sum(std::vector<Real>(lost));
  const Pair result = Sum(total, rest);
  return {result.high, result.low + plain(lost)};
}

Halves HalvesOf(Real x) {
  const Real scaled = x * kSplitter, high = scaled - (scaled - x);
  return {x, high, x - high};
}

Pair Product(const Halves& x, const Halves& y) {
  const Real product = x.whole * y.whole;
  const Real rest = ((x.high * y.high - product) + x.high * y.low) + x.low * y.high;
  return {product, rest + x.low * y.low};
}

Pair Product(const Halves& x, double y) {
  const double scaled = y * kSplitter, high = scaled - (scaled - y), low = y - high;
  const Real product = x.whole * y;
  const Real rest = ((x.high * high - product) + x.high * low) + x.low * high;
  return {product, rest + x.low * low};
}

Pair Product(Real x, Real y) { return Product(HalvesOf(x), HalvesOf(y)); }

Pair Square(Real x) {
  const Halves a = HalvesOf(x);
  const Real square = x * x;
  return {square, ((a.high * a.high - square) + (a.high + a.high) * a.low) + a.low * a.low};
}

Pair operator+(Pair x, Pair y) {
  const Pair sum = Sum(x.high, y.high);
  return FastSum(sum.high, sum.low + (x.low + y.low));
}

Pair operator*(Pair x, Pair y) {
  const Pair product = Product(x.high, y.high);
  return FastSum(product.high, product.low + (x.high * y.low + x.low * y.high));
}

Real Quotient(Pair x, Pair y) {
  const Real q = x.high / y.high;
  const Pair back = Product(q, y.high);
  const Real rest = ((x.high - back.high) - back.low) + (x.low - q * y.low);
  return q + rest / y.high;
}

Pair Squared(Pair x) {
  const Pair square = Square(x.high);
  return FastSum(square.high, square.low + (x.high + x.high) * x.low);
}

ExponentialPair ExponentialOf(Real x, Digits digits) {
  // ln2 as two pieces of 32 bits, whose products with k are exact, and the rest.
  constexpr double kLn2[] = {0x1.62e42feep-1, 0x1.a39ef356p-33, 0x1.93c7673007e5fp-65};
  const Real k = Rounded(x * 0x1.71547652b82fep0);
  const Pair nearly = Sum(x - k * kLn2[0], -(k * kLn2[1]));
  const Pair r = FastSum(nearly.high, nearly.low - k * kLn2[2]);
  const std::span<const double> divisors = kExponential;
  if (digits == Digits::kAll) return {k, r * Series(r, divisors.subspan(1), 13)};
  // r + r^2 / 2 + ..., |r| < 0.35: from r^3 / 6 on one number is enough.
  const Pair square = Squared(r), sum = FastSum(r.high, square.high * 0.5);
  const Real tail = Polynomial(r.high, divisors.subspan(3, 12)) * (square.high * r.high);
  return {k, FastSum(sum.high, (sum.low + r.low) + (square.low * 0.5 + tail))};
}

Pair LessOne(const ExponentialPair& e, Real power) {
  // 2^k (1 + (e^r - 1)) - 1
  return Sum(power, power.Number(-1)) + e.less_one * power;
}

Pair AngleOf(Real y, bool half) {
  const Real turns = y * (1 / kTurn[0]);
  return LessTurns(y, half ? Rounded(turns - 0.5) + 0.5 : Rounded(turns), 1);
}

Pair CosineLessOne(Pair r, Digits digits) {
  // -h^2 / 2 + h^4 / 24 - ..., h = r / 4: from h^4 / 24 on one number is enough for few digits.
  const Pair h = r * 0.25, z = Squared(h);
  const std::span<const double> divisors = kCosine;
  Pair less = z;
  if (digits == Digits::kAll) {
    less = z * Series(z, divisors.subspan(1), 6);
  } else {
    const Real tail = Polynomial(z.high, divisors.subspan(2, 7)) * (z.high * z.high);
    const Pair sum = FastSum(z.high * -0.5, tail);
    less = {sum.high, sum.low - z.low * 0.5};
  }
  // Twice cos(2h) - 1 = 4 (cos(h) - 1) + 2 (cos(h) - 1)^2.
  for (int i = 0; i < 2; ++i) {
    const Pair square = Square(less.high);
    const Pair sum = FastSum(less.high * 4, square.high * 2);
    const Real rest = (less.low + less.high * less.low) * 4 + square.low * 2;
    less = {sum.high, sum.low + rest};
  }
  return less;
}

CirclePair CircleOf(Real y) {
  Builder& b = y.builder();
  const Real k = Rounded(y * (4 / kTurn[0]));
  const Pair r = LessTurns(y, k, 0.25), z = Squared(r);
  // 1 - r^2 / 2 + r^4 / 24 - ... and r - r^3 / 6 + ..., |r| < 0.79: as above. sin(r + l) is
  // sin(r) + l cos(r).
  const std::span<const double> cosines = kCosine, sines = kSine;
  const Pair even = FastSum(z.high.Number(1), z.high * -0.5);
  const Real even_tail = Polynomial(z.high, cosines.subspan(2, 8)) * (z.high * z.high);
  const Pair cosine = FastSum(even.high, even.low + (even_tail - z.low * 0.5));
  const Real odd_tail = Polynomial(z.high, sines.subspan(1)) * (z.high * r.high);
  const Pair sine = FastSum(r.high, odd_tail + r.low * even.high);
  // Quarters of a turn.
  Instruction* quarters = b.Convert(k.value(), ElementType::kS64);
  auto has = [&](Instruction* n, double bit) {
    return Truth(b, b.Compare(Direction::kNe, b.And(n, b.Number(n, bit)), b.Number(n, 0)));
  };
  const Truth odd = has(quarters, 1), below = has(quarters, 2);
  const Truth left = has(b.Plus(quarters, b.Number(quarters, 1)), 2);
  const Pair c = Select(odd, sine, cosine), s = Select(odd, cosine, sine);
  const Truth moderate = Abs(y) < 0x1p45;
  auto choose = [&](Pair x, Truth negative, Real other) -> Pair {
    return {Select(moderate, Select(negative, -x.high, x.high), other),
            Select(moderate, Select(negative, -x.low, x.low), 0)};
  };
  return {choose(c, left, Cos(y)), choose(s, below, Sin(y))};
}

}  // namespace kiln::passes::expand

// Ops on complex numbers. The functions are computed in wider parts; the store of the result rounds
// once.
#pragma once

#include <cmath>
#include <complex>
#include <limits>

#include "interp/elementwise.h"

namespace kiln::interp {

// The wider type of a complex element type: see Wider in scalar.h.
template <ComplexType T>
using WiderComplex =
    std::complex<std::conditional_t<std::same_as<T, std::complex<double>>, long double, double>>;

template <ComplexType T, typename W>
T RoundTo(const std::complex<W>& z) {
  using Part = typename T::value_type;
  return T(static_cast<Part>(z.real()), static_cast<Part>(z.imag()));
}

// By the formula, unlike C's product, which turns some NaNs into infinities.
template <typename W>
std::complex<W> ComplexProduct(const std::complex<W>& x, const std::complex<W>& y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}

// a * b + c * d, nearly as if rounded once.
template <typename W>
W SumOfProducts(W a, W b, W c, W d) {
  const W product = c * d, sum = a * b + product;
  // A zero keeps its sign.
  if (!std::isfinite(sum) || product == 0) return sum;
  return std::fma(a, b, product) + std::fma(c, d, -product);
}

// The same product, accurate to the last place of each part.
template <typename W>
std::complex<W> NearestProduct(const std::complex<W>& x, const std::complex<W>& y) {
  return {SumOfProducts(x.real(), y.real(), -x.imag(), y.imag()),
          SumOfProducts(x.real(), y.imag(), x.imag(), y.real())};
}

// C's quotient, by the example of its Annex G: the divisor is scaled, and infinities and zeros are
// handled where the formula gives NaNs.
template <typename W>
std::complex<W> ComplexQuotient(const std::complex<W>& x, const std::complex<W>& y) {
  W a = x.real(), b = x.imag(), c = y.real(), d = y.imag();
  int scale = 0;
  const W exponent = std::logb(std::fmax(std::fabs(c), std::fabs(d)));
  if (std::isfinite(exponent)) {
    scale = static_cast<int>(exponent);
    c = std::scalbn(c, -scale);
    d = std::scalbn(d, -scale);
  }
  const W square = c * c + d * d;
  W real = std::scalbn(SumOfProducts(a, c, b, d) / square, -scale);
  W imag = std::scalbn(SumOfProducts(b, c, -a, d) / square, -scale);
  if (!std::isnan(real) || !std::isnan(imag)) return {real, imag};
  constexpr W kInfinity = std::numeric_limits<W>::infinity();
  // An infinite part as 1, a finite one as 0.
  auto box = [](W part) { return std::copysign(std::isinf(part) ? W{1} : W{0}, part); };
  if (square == 0 && (!std::isnan(a) || !std::isnan(b))) {
    real = std::copysign(kInfinity, c) * a;
    imag = std::copysign(kInfinity, c) * b;
  } else if ((std::isinf(a) || std::isinf(b)) && std::isfinite(c) && std::isfinite(d)) {
    a = box(a);
    b = box(b);
    real = kInfinity * (a * c + b * d);
    imag = kInfinity * (b * c - a * d);
  } else if (std::isinf(exponent) && exponent > 0 && std::isfinite(a) && std::isfinite(b)) {
    c = box(c);
    d = box(d);
    real = W{0} * (a * c + b * d);
    imag = W{0} * (b * c - a * d);
  }
  return {real, imag};
}

// For ops with complex operands or results; see EvaluateElementwise.
Status EvaluateComplex(const ir::Instruction& instruction,
                       std::span<const ElementwiseOperand> operands, std::byte* out, int64_t count);

}  // namespace kiln::interp

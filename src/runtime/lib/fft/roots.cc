#include "runtime/lib/fft/roots.h"

#include <cmath>
#include <utility>

namespace kiln::runtime::lib::fft {
namespace {

constexpr long double kPi = 3.14159265358979323846264338327950288419716939937510L;

// By an angle of at most an eighth of the circle, so that exact roots come out exact.
std::complex<long double> Root(int64_t k, int64_t n) {
  // The angle 2 pi k / n in eighths of the circle: `turns` of them and the rest / n of one.
  const __int128 eighths = static_cast<__int128>(k) * 8;
  int turns = static_cast<int>(eighths / n);
  auto rest = static_cast<int64_t>(eighths % n);
  const bool mirrored = turns % 2 != 0;
  if (mirrored) rest = n - rest;
  const long double angle = kPi / 4 * static_cast<long double>(rest) / static_cast<long double>(n);
  long double c = std::cos(angle), s = std::sin(angle);
  // Rounding of the angle would make them two.
  if (rest == n) c = s = std::sqrt(0.5L);
  if (mirrored) std::swap(c, s);
  switch (turns / 2) {
    case 0:
      return {c, -s};
    case 1:
      return {-s, -c};
    case 2:
      return {-c, s};
    default:
      return {s, c};
  }
}

}  // namespace

Roots::Roots(int64_t n) {
  while ((int64_t{1} << (2 * shift_)) < n) ++shift_;
  const int64_t low = int64_t{1} << shift_;
  for (int64_t k = 0; k < low && k < n; ++k) low_.push_back(Root(k, n));
  for (int64_t k = 0; k < n; k += low) high_.push_back(Root(k, n));
}

std::complex<long double> Roots::operator()(int64_t k) const {
  const std::complex<long double> a = high_[static_cast<size_t>(k >> shift_)];
  const std::complex<long double> b = low_[static_cast<size_t>(k & ((int64_t{1} << shift_) - 1))];
  // Operators of complex numbers look for infinities.
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace kiln::runtime::lib::fft

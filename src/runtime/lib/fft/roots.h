// Roots of unity, in more precision than the transforms.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace kiln::runtime::lib::fft {

// exp(-2 pi i k / n), from some 2 sqrt(n) of them: each is off by little more than long double is.
class Roots {
 public:
  explicit Roots(int64_t n);
  // Of any k from 0 to below n.
  std::complex<long double> operator()(int64_t k) const;

  // Writes the real and the imaginary part.
  template <typename T>
  void Put(int64_t k, T* to) const {
    const std::complex<long double> root = (*this)(k);
    to[0] = static_cast<T>(root.real());
    to[1] = static_cast<T>(root.imag());
  }

 private:
  int shift_ = 0;
  std::vector<std::complex<long double>> low_, high_;
};

}  // namespace kiln::runtime::lib::fft

// Sums of floats and complex numbers.
#pragma once

#include <cmath>
#include <cstddef>

#include "interp/complex.h"
#include "interp/scalar.h"

namespace kiln::interp {

// The type of computation for sums, and a wider one.
template <typename T>
struct SumTypes {
  using Compute = ComputeType<T>;
  using Wide = Wider<T>;
};
template <ComplexType T>
struct SumTypes<T> {
  using Compute = T;
  using Wide = WiderComplex<T>;
};

template <typename T>
T Times(const T& x, const T& y) {
  return x * y;
}
template <typename W>
std::complex<W> Times(const std::complex<W>& x, const std::complex<W>& y) {
  return ComplexProduct(x, y);
}

// The terms of a block of a sum.
inline constexpr size_t kSumBlock = 32;

// A sum in order in the type of computation: short sums agree with other implementations to the
// last bit, even if their terms cancel. Blocks of terms are then added in a wider type, so that
// long sums stay accurate.
template <typename T>
class Sum {
 public:
  using Compute = typename SumTypes<T>::Compute;

  explicit Sum(Compute first) : block_(first) {}

  void Add(Compute x) {
    block_ += x;
    Count();
  }
  // A product added without rounding.
  void AddFused(Compute x, Compute y) {
    block_ = std::fma(x, y, block_);
    Count();
  }
  // Rounded to the type of an array.
  T Rounded() const {
    // A single block keeps the sign of its zero.
    return any_ ? RoundTo<T>(wide_ + static_cast<Wide>(block_)) : RoundTo<T>(block_);
  }

 private:
  using Wide = typename SumTypes<T>::Wide;

  void Count() {
    if (++count_ < kSumBlock) return;
    wide_ += static_cast<Wide>(block_);
    block_ = Compute(0);
    count_ = 0;
    any_ = true;
  }

  Compute block_;
  Wide wide_ = Wide(0);
  size_t count_ = 0;
  bool any_ = false;
};

}  // namespace kiln::interp

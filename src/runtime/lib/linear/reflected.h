// Reflections of real matrices in row-major order, many at once: I - V T V^T is the product of
// I - tau v v^T (Schreiber and Van Loan, A storage-efficient WY representation for products of
// Householder transformations, 1989). V has a column for each v: 0 above the diagonal, 1 on it.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/lib/linear/blocked.h"

namespace kiln::runtime::lib::linear {

// LAPACK's larfg without a loss of range: x, of n > 0 elements, becomes beta and v's tail; returns
// tau.
template <typename T>
T ReflectionInPlace(const Loops<T>& loops, T* x, int64_t n);

template <typename T>
class Reflected {
 public:
  // Columns of a block.
  static constexpr int64_t kWidth = 32;

  // For matrices of at most so many rows, applied to as many columns.
  Reflected(Blocked<T>& blocked, int64_t rows, int64_t columns);

  // The QR decomposition of `width` columns of a: R and the tails of v below it.
  void Factor(T* a, int64_t stride, int64_t rows, int64_t width, T* taus);
  // Takes the reflections of such columns.
  void Read(const T* a, int64_t stride, int64_t rows, int64_t width, const T* taus);
  // c = Q c or Q^T c.
  void Apply(T* c, int64_t stride, int64_t columns, bool transposed);

 private:
  void Combine(const T* taus);

  Blocked<T>& blocked_;
  int64_t stride_, columns_;       // of v_ and of the products
  int64_t rows_ = 0, width_ = 0;   // of V
  std::unique_ptr<T[]> v_;         // column-major
  std::unique_ptr<T[]> across_;    // V in row-major order
  std::unique_ptr<T[]> products_;  // two, of kWidth rows
  T t_[kWidth * kWidth];           // row-major
};

}  // namespace kiln::runtime::lib::linear

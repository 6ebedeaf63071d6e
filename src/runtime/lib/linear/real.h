// Reflections of real matrices in column-major order, and what eigenvalues and singular values need
// of them. Elements are at most about 1, so that squares are in range.
#pragma once

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "runtime/lib/linear/iterations.h"
#include "runtime/lib/linear/lapack_call.h"

namespace kiln::runtime::lib::linear {

// The array, or its transpose, divided by a power of 2 such that the largest element is near 1.
// Nothing if an element is not finite; of the lower triangle alone if `triangle` says so: 'L', 'U'
// for the transposed upper one, 'A' for all.
template <typename T>
struct Normal {
  Columns<T> matrix;
  double power = 1;
  bool is_finite = true;
};
template <typename T>
Normal<T> ReadNormal(const Array& array, bool transposed, char triangle);

// Reflection I - tau v v^T of x, of n elements, which becomes v, with 1 in front; `first` is the
// first element of the image, whose others are 0.
template <typename T>
struct Reflection {
  T tau = 0;
  T first = 0;
};
template <typename T>
Reflection<T> ReflectionOf(T* x, int64_t n);

// The product of reflections, that of column k from row k + `offset` on, as `columns` columns.
template <typename T>
Columns<T> ProductOf(Columns<T>& reflections, std::span<const T> taus, int64_t offset,
                     int64_t columns);

// Factors of A = U S V^T, with as many columns of U as asked for; the values are in no order and
// may be negative. A has at least as many rows as columns.
template <typename T>
struct RealSingular {
  Columns<T> u, v;
  std::vector<double> values;
  bool converged = true;
};
template <typename T>
RealSingular<T> Decomposed(Columns<T> matrix, bool vectors, int64_t u_columns);

// Places of values in descending order of magnitude, or in ascending order.
std::vector<int64_t> OrderOf(std::span<const double> values, bool descending);

}  // namespace kiln::runtime::lib::linear

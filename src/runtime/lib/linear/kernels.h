// One matrix each, in row-major order. NaNs and divisions by zero propagate as in plain arithmetic.
// A cancelled run skips the rest.
#pragma once

#include <complex>
#include <cstdint>

#include "frame/frame.h"

namespace kiln::runtime::lib::linear {

template <typename T>
struct RealOf {
  using Type = T;
};
template <typename T>
struct RealOf<std::complex<T>> {
  using Type = T;
};
template <typename T>
using Real = typename RealOf<T>::Type;

// Smaller matrices need hardly any stack or time: a call of Eigen would cost more than it saves.
inline constexpr int64_t kSmall = 24;

// The Cholesky decomposition of the lower or upper triangle of an n by n matrix, in its place; the
// other triangle is neither read nor written. False if the matrix is not positive definite: then
// the triangle's contents are undefined.
template <typename T>
bool Decompose(const kiln_frame* frame, T* a, int64_t n, bool lower);

// Solves op(a) x = b for `columns` right sides, in place of b: element i of right side k is at b[i
// * row_stride + k * column_stride]; one of the strides is 1.
struct Triangle {
  bool lower = false, unit_diagonal = false;
  bool transposed = false, conjugated = false;
};
// `scratch` is n by n.
template <typename T>
void Solve(const kiln_frame* frame, const T* a, int64_t n, const Triangle& triangle, T* b,
           int64_t columns, int64_t row_stride, int64_t column_stride, T* scratch);

}  // namespace kiln::runtime::lib::linear

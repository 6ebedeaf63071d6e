#include "runtime/lib/linear/blocked.h"

#include <algorithm>
#include <cmath>

#include "runtime/lib/parallel.h"

namespace kiln::runtime::lib::linear {
namespace {

// Rows of a triangular system, and columns of a panel, that are solved without products.
constexpr int64_t kBase = 8;
// Columns of a panel of LU.
constexpr int64_t kPanel = 64;
// Rows of a triangle that are updated at once, in elements.
constexpr int64_t kTriangle = 64;
// Rows of a product between two polls for cancellation.
constexpr int64_t kRowsBetweenPolls = 512;

// The first part of n, a multiple of kBase.
int64_t HalfOf(int64_t n) { return (n / 2 + kBase - 1) / kBase * kBase; }

}  // namespace

template <typename T>
T* Blocked<T>::Work(int64_t depth) {
  const int64_t size = ProductBlocks::WorkOf(depth);
  if (size > work_size_) {
    work_ = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(size));
    work_size_ = size;
  }
  return work_.get();
}

template <typename T>
void Blocked<T>::Subtract(T* c, int64_t c_stride, int64_t rows, int64_t columns, const T* a,
                          int64_t a_stride, int64_t depth, const T* b, int64_t b_row,
                          int64_t b_column) {
  if (rows <= 0 || columns <= 0 || depth <= 0) return;
  T* const work = Work(depth);
  for (int64_t i = 0; i < rows; i += kRowsBetweenPolls) {
    if (IsCancelled(frame_)) return;
    loops_.subtract_product(c + i * c_stride, c_stride, columns,
                            std::min(kRowsBetweenPolls, rows - i), depth, a, a_stride,
                            b + i * b_column, b_row, b_column, work);
  }
}

template <typename T>
void Blocked<T>::Solve(const Lower<T>& l, int64_t n, T* x, int64_t stride, int64_t columns) {
  if (columns == 0) return;
  if (n <= kBase) {
    return loops_.solve_rows(l.data, l.row, l.column, n, l.unit, x, stride, columns);
  }
  const int64_t half = HalfOf(n);
  Solve(l, half, x, stride, columns);
  Subtract(x + half * stride, stride, n - half, columns, x, stride, half, l.at(half, 0), l.column,
           l.row);
  Lower<T> rest = l;
  rest.data = l.at(half, half);
  Solve(rest, n - half, x + half * stride, stride, columns);
}

template <typename T>
bool Blocked<T>::Cholesky(T* a, int64_t stride, int64_t n) {
  if (n <= kBase) {
    for (int64_t k = 0; k < n; ++k) {
      T* row = a + k * stride;
      if (!(row[k] > 0)) return false;
      const T diagonal = std::sqrt(row[k]);
      row[k] = diagonal;
      for (int64_t j = k + 1; j < n; ++j) row[j] /= diagonal;
      for (int64_t i = k + 1; i < n; ++i) {
        for (int64_t j = i; j < n; ++j) a[i * stride + j] -= row[i] * row[j];
      }
    }
    return true;
  }
  const int64_t half = HalfOf(n), rest = n - half;
  if (!Cholesky(a, stride, half)) return false;
  T* const right = a + half;
  Solve(Lower<T>{a, 1, stride, false}, half, right, stride, rest);
  T* const corner = a + half * (stride + 1);
  if (!panel_) panel_ = std::make_unique_for_overwrite<T[]>(kTriangle * kTriangle);
  T* const square = panel_.get();
  for (int64_t i = 0; i < rest; i += kTriangle) {
    const int64_t height = std::min(kTriangle, rest - i), behind = i + height;
    T* const diagonal = corner + i * (stride + 1);
    for (int64_t r = 0; r < height; ++r) std::fill_n(square + r * kTriangle, height, T(0));
    Subtract(square, kTriangle, height, height, right + i, stride, half, right + i, stride, 1);
    for (int64_t r = 0; r < height; ++r) {
      for (int64_t j = r; j < height; ++j) diagonal[r * stride + j] += square[r * kTriangle + j];
    }
    Subtract(corner + i * stride + behind, stride, height, rest - behind, right + behind, stride,
             half, right + i, stride, 1);
  }
  return Cholesky(corner, stride, rest);
}

// In column-major order.
template <typename T>
void Blocked<T>::LuOfPanel(T* a, int64_t stride, int64_t m, int64_t n, int32_t* pivots) {
  if (n <= kBase) {
    for (int64_t k = 0; k < std::min(m, n); ++k) {
      T* column = a + k * stride;
      const int64_t pivot = k + loops_.largest(column + k, m - k);
      pivots[k] = static_cast<int32_t>(pivot);
      if (pivot != k) {
        for (int64_t j = 0; j < n; ++j) std::swap(a[k + j * stride], a[pivot + j * stride]);
      }
      const T head = column[k];
      if (head != 0) {
        for (int64_t i = k + 1; i < m; ++i) column[i] /= head;
      }
      loops_.subtract_outer(column + stride + k + 1, stride, m - k - 1, n - k - 1, column + k + 1,
                            column + stride + k, stride);
    }
    return;
  }
  const int64_t half = HalfOf(n), rest = n - half;
  T* const right = a + half * stride;
  LuOfPanel(a, stride, m, half, pivots);
  auto swap = [&](int64_t from, int64_t to, T* columns, int64_t count) {
    for (int64_t j = 0; j < count; ++j) {
      T* column = columns + j * stride;
      for (int64_t i = from; i < to; ++i) std::swap(column[i], column[pivots[i]]);
    }
  };
  swap(0, half, right, rest);
  for (int64_t j = 0; j < rest; ++j) {
    T* column = right + j * stride;
    for (int64_t k = 0; k < half; ++k) {
      for (int64_t i = k + 1; i < half; ++i) column[i] -= a[i + k * stride] * column[k];
    }
  }
  Subtract(right + half, stride, rest, m - half, a + half, stride, half, right, 1, stride);
  LuOfPanel(right + half, stride, m - half, rest, pivots + half);
  for (int64_t i = half; i < n; ++i) pivots[i] += static_cast<int32_t>(half);
  swap(half, n, a, half);
}

template <typename T>
void Blocked<T>::Lu(T* a, int64_t stride, int64_t m, int64_t n, int32_t* pivots) {
  const int64_t steps = std::min(m, n);
  const int64_t width = steps <= 2 * kPanel ? kPanel / 2 : kPanel;
  const int64_t panel_stride = (m + 15) / 16 * 16 + 16;
  panel_ = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(panel_stride * width));
  T* const panel = panel_.get();
  for (int64_t k = 0; k < steps; k += width) {
    const int64_t wide = std::min(width, steps - k), end = k + wide;
    T* const corner = a + k * (stride + 1);
    loops_.transpose(corner, stride, m - k, wide, panel, panel_stride);
    LuOfPanel(panel, panel_stride, m - k, wide, pivots + k);
    loops_.transpose(panel, panel_stride, wide, m - k, corner, stride);
    for (int64_t i = k; i < end; ++i) {
      pivots[i] += static_cast<int32_t>(k);
      if (pivots[i] == i) continue;
      T *row = a + i * stride, *other = a + pivots[i] * stride;
      std::swap_ranges(row, row + k, other);
      std::swap_ranges(row + end, row + n, other + end);
    }
    T* const right = corner + wide;
    Solve(Lower<T>{corner, stride, 1, true}, wide, right, stride, n - end);
    Subtract(right + wide * stride, stride, m - end, n - end, right, stride, wide,
             corner + wide * stride, 1, stride);
    if (IsCancelled(frame_)) {
      for (int64_t i = end; i < steps; ++i) pivots[i] = static_cast<int32_t>(i);
      return;
    }
  }
}

template class Blocked<float>;
template class Blocked<double>;

}  // namespace kiln::runtime::lib::linear

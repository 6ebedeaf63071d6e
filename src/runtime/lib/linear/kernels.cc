#include "runtime/lib/linear/kernels.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "runtime/lib/linear/blocked.h"
#include "runtime/lib/parallel.h"

namespace kiln::runtime::lib::linear {
namespace {

// Larger work polls for cancellation between products of blocks: those of this size and of complex
// numbers take about 40 ms.
constexpr int64_t kBlock = 256;
constexpr int64_t kBlockOfSides = 512;

template <typename T, int kOrder>
using Dense = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, kOrder>;
template <typename T, int kOrder>
using Matrix = Eigen::Map<Dense<T, kOrder>, 0, Eigen::OuterStride<>>;

template <typename T>
T Conjugate(T x) {
  if constexpr (std::is_same_v<T, Real<T>>) {
    return x;
  } else {
    return std::conj(x);
  }
}

// a * b, without a look at infinities.
template <typename T>
T Product(T a, T b) {
  if constexpr (std::is_same_v<T, Real<T>>) {
    return a * b;
  } else {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
}

template <typename T>
Real<T> SquareOf(T x) {
  return std::real(x) * std::real(x) + std::imag(x) * std::imag(x);
}

// By the textbook; at(i, j) is an element of the lower triangle.
template <typename T, typename At>
bool DecomposeSmall(int64_t n, At at) {
  for (int64_t j = 0; j < n; ++j) {
    Real<T> rest = std::real(at(j, j));
    for (int64_t k = 0; k < j; ++k) rest -= SquareOf(at(j, k));
    if (!(rest > 0)) return false;
    const Real<T> diagonal = std::sqrt(rest);
    at(j, j) = diagonal;
    for (int64_t i = j + 1; i < n; ++i) {
      T sum = at(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= Product(at(i, k), Conjugate(at(j, k)));
      at(i, j) = sum / diagonal;
    }
  }
  return true;
}

// Of the lower triangle. With A11 = L11 L11^H: A21 = L21 L11^H, and A22 - L21 L21^H is left.
template <typename T, int kOrder>
bool DecomposeLarge(const kiln_frame* frame, T* a, int64_t n) {
  Matrix<T, kOrder> matrix(a, n, n, Eigen::OuterStride<>(n));
  const int64_t block = n <= 2 * kBlock ? n : kBlock;
  for (int64_t k = 0; k < n; k += block) {
    const int64_t width = std::min(block, n - k);
    Eigen::Ref<Dense<T, kOrder>> corner(matrix.block(k, k, width, width));
    Eigen::LLT<Eigen::Ref<Dense<T, kOrder>>, Eigen::Lower> decomposition(corner);
    if (decomposition.info() != Eigen::Success) return false;
    // Eigen's own checks miss NaNs.
    for (int64_t i = 0; i < width; ++i) {
      if (std::isnan(std::real(corner(i, i)))) return false;
    }
    for (int64_t i = k + width; i < n; i += block) {
      const int64_t height = std::min(block, n - i);
      auto rows = matrix.block(i, k, height, width);
      corner.template triangularView<Eigen::Lower>()
          .adjoint()
          .template solveInPlace<Eigen::OnTheRight>(rows);
      for (int64_t j = k + width; j < i; j += block) {
        if (IsCancelled(frame)) return true;
        matrix.block(i, j, height, block).noalias() -=
            rows * matrix.block(j, k, block, width).adjoint();
      }
      matrix.block(i, i, height, height)
          .template selfadjointView<Eigen::Lower>()
          .rankUpdate(rows, T(-1));
    }
  }
  return true;
}

// op(a) with its diagonal, as a matrix of its own. Whether Eigen may multiply by reciprocals: it
// also skips products with 0.
template <typename T>
bool Unfold(const T* a, int64_t n, const Triangle& t, T* to) {
  constexpr Real<T> kLeast = 4 / std::numeric_limits<Real<T>>::max();
  bool is_regular = true;
  // In the order of memory.
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = t.lower ? 0 : i; j < (t.lower ? i + 1 : n); ++j) {
      T x = i == j && t.unit_diagonal ? T(1) : a[i * n + j];
      if (t.conjugated) x = Conjugate(x);
      const Real<T> size = std::max(std::abs(std::real(x)), std::abs(std::imag(x)));
      is_regular &=
          std::isfinite(std::real(x)) && std::isfinite(std::imag(x)) && (i != j || size >= kLeast);
      to[t.transposed ? j * n + i : i * n + j] = x;
    }
  }
  return is_regular;
}

// Block by block: the known terms are subtracted, then the diagonal block is solved.
template <typename T, int kOrder>
void SolveLarge(const kiln_frame* frame, const T* a, int64_t n, bool lower, T* b, int64_t columns,
                int64_t stride) {
  Eigen::Map<const Dense<T, Eigen::RowMajor>> matrix(a, n, n);
  Matrix<T, kOrder> sides(b, n, columns, Eigen::OuterStride<>(stride));
  const bool is_one = n <= 2 * kBlock && columns <= 2 * kBlockOfSides;
  const int64_t block = is_one ? n : kBlock, width = is_one ? columns : kBlockOfSides;
  const int64_t blocks = (n + block - 1) / block;
  auto height_of = [&](int64_t k) { return std::min(block, n - k * block); };
  for (int64_t column = 0; column < columns; column += width) {
    auto some = sides.middleCols(column, std::min(width, columns - column));
    for (int64_t step = 0; step < blocks; ++step) {
      const int64_t k = lower ? step : blocks - 1 - step, height = height_of(k);
      auto rows = some.middleRows(k * block, height);
      for (int64_t known = 0; known < step; ++known) {
        if (IsCancelled(frame)) return;
        const int64_t j = lower ? known : blocks - 1 - known;
        rows.noalias() -= matrix.block(k * block, j * block, height, height_of(j)) *
                          some.middleRows(j * block, height_of(j));
      }
      auto corner = matrix.block(k * block, k * block, height, height);
      if (lower) {
        corner.template triangularView<Eigen::Lower>().solveInPlace(rows);
      } else {
        corner.template triangularView<Eigen::Upper>().solveInPlace(rows);
      }
    }
  }
}

// Each right side by itself: op(a)'s rows or columns are contiguous.
template <typename T>
void SolveFew(const kiln_frame* frame, const Lower<T>& l, int64_t n, T* b, int64_t columns,
              int64_t row_stride, int64_t column_stride) {
  const Loops<T>& loops = LoopsOfMachine<T>();
  const bool is_reversed = l.row < 0;
  const bool has_rows = std::abs(l.column) == 1;
  std::vector<T> side(static_cast<size_t>(n));
  for (int64_t c = 0; c < columns && !IsCancelled(frame); ++c, b += column_stride) {
    for (int64_t i = 0; i < n; ++i) side[static_cast<size_t>(i)] = b[i * row_stride];
    for (int64_t step = 0; step < n; ++step) {
      const int64_t rest = n - step - 1, i = is_reversed ? rest : step;
      T& x = side[static_cast<size_t>(i)];
      T* const known = side.data() + (is_reversed ? i + 1 : 0);
      if (has_rows) x -= loops.dot(l.at(step, is_reversed ? step - 1 : 0), known, step);
      if (!l.unit) x /= *l.at(step, step);
      if (has_rows) continue;
      T* const unknown = side.data() + (is_reversed ? 0 : i + 1);
      const T* const column = l.at(is_reversed ? n - 1 : step + 1, step);
      if (rest > 0) loops.subtract_outer(unknown, 0, rest, 1, column, &x, 0);
    }
    for (int64_t i = 0; i < n; ++i) b[i * row_stride] = side[static_cast<size_t>(i)];
  }
}

// Real numbers by loops for the machine's vectors.
template <typename T>
void SolveReal(const kiln_frame* frame, const T* a, int64_t n, const Triangle& t, T* b,
               int64_t columns, int64_t row_stride, int64_t column_stride) {
  const int64_t row = t.transposed ? 1 : n, column = t.transposed ? n : 1;
  const bool is_lower = t.lower != t.transposed;
  const Lower<T> l = is_lower ? Lower<T>{a, row, column, t.unit_diagonal}
                              : Lower<T>::Reversed(a, n, row, column, t.unit_diagonal);
  constexpr int64_t kFew = 4;
  if (columns <= kFew) return SolveFew(frame, l, n, b, columns, row_stride, column_stride);
  Blocked<T> blocked(frame);
  auto solve = [&](T* x, int64_t stride) {
    if (is_lower) return blocked.Solve(l, n, x, stride, columns);
    blocked.Solve(l, n, x + (n - 1) * stride, -stride, columns);
  };
  if (column_stride == 1) return solve(b, row_stride);
  const int64_t stride = (columns + 15) / 16 * 16 + 16;
  const auto rows = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(n * stride));
  blocked.loops().transpose(b, column_stride, columns, n, rows.get(), stride);
  solve(rows.get(), stride);
  blocked.loops().transpose(rows.get(), stride, n, columns, b, column_stride);
}

// As the upper triangle.
template <typename T>
bool DecomposeReal(const kiln_frame* frame, T* a, int64_t n, bool lower) {
  Blocked<T> blocked(frame);
  if (!lower) return blocked.Cholesky(a, n, n);
  const int64_t stride = (n + 15) / 16 * 16 + 16;
  const auto upper = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(n * stride));
  constexpr int64_t kRows = 64;
  for (int64_t i = 0; i < n; i += kRows) {
    const int64_t height = std::min(kRows, n - i);
    blocked.loops().transpose(a + i * n, n, height, i + height, upper.get() + i, stride);
  }
  const bool is_positive = blocked.Cholesky(upper.get(), stride, n);
  for (int64_t i = 0; i < n; i += kRows) {
    const int64_t height = std::min(kRows, n - i);
    blocked.loops().transpose(upper.get() + i, stride, i, height, a + i * n, n);
    for (int64_t k = i; k < i + height; ++k) {
      for (int64_t j = i; j <= k; ++j) a[k * n + j] = upper[static_cast<size_t>(j * stride + k)];
    }
  }
  return is_positive;
}

// By the textbook; at(i, j) is an element of op(a).
template <typename T, typename At>
void SolveSmall(const kiln_frame* frame, int64_t n, bool lower, bool unit_diagonal, At at, T* b,
                int64_t columns, int64_t row_stride, int64_t column_stride) {
  for (int64_t step = 0; step < n; ++step) {
    if (step % 16 == 15 && IsCancelled(frame)) return;
    const int64_t i = lower ? step : n - 1 - step;
    T* row = b + i * row_stride;
    for (int64_t k = 0; k < step; ++k) {
      const int64_t j = lower ? k : n - 1 - k;
      const T factor = at(i, j);
      const T* other = b + j * row_stride;
      if (column_stride == 1) {
        for (int64_t c = 0; c < columns; ++c) row[c] -= Product(factor, other[c]);
      } else {
        for (int64_t c = 0; c < columns; ++c) {
          row[c * column_stride] -= Product(factor, other[c * column_stride]);
        }
      }
    }
    if (unit_diagonal) continue;
    const T diagonal = at(i, i);
    for (int64_t c = 0; c < columns; ++c) row[c * column_stride] /= diagonal;
  }
}

}  // namespace

template <typename T>
bool Decompose(const kiln_frame* frame, T* a, int64_t n, bool lower) {
  if (n < kSmall) {
    // The upper triangle is the lower one's conjugate, transposed.
    return lower ? DecomposeSmall<T>(n, [&](int64_t i, int64_t j) -> T& { return a[i * n + j]; })
                 : DecomposeSmall<T>(n, [&](int64_t i, int64_t j) -> T& { return a[j * n + i]; });
  }
  if constexpr (std::is_same_v<T, Real<T>>) {
    return DecomposeReal(frame, a, n, lower);
  } else {
    return lower ? DecomposeLarge<T, Eigen::RowMajor>(frame, a, n)
                 : DecomposeLarge<T, Eigen::ColMajor>(frame, a, n);
  }
}

template <typename T>
void Solve(const kiln_frame* frame, const T* a, int64_t n, const Triangle& t, T* b, int64_t columns,
           int64_t row_stride, int64_t column_stride, T* scratch) {
  const bool lower = t.lower != t.transposed;
  if constexpr (std::is_same_v<T, Real<T>>) {
    if (n >= kSmall) {
      return SolveReal(frame, a, n, t, b, columns, row_stride, column_stride);
    }
  } else if (n >= kSmall && Unfold(a, n, t, scratch)) {
    if (column_stride == 1) {
      SolveLarge<T, Eigen::RowMajor>(frame, scratch, n, lower, b, columns, row_stride);
    } else {
      SolveLarge<T, Eigen::ColMajor>(frame, scratch, n, lower, b, columns, column_stride);
    }
    return;
  }
  auto at = [&](int64_t i, int64_t j) {
    const T x = t.transposed ? a[j * n + i] : a[i * n + j];
    return t.conjugated ? Conjugate(x) : x;
  };
  SolveSmall<T>(frame, n, lower, t.unit_diagonal, at, b, columns, row_stride, column_stride);
}

#define KILN_INSTANTIATE(T)                                                                  \
  template bool Decompose<T>(const kiln_frame*, T*, int64_t, bool);                          \
  template void Solve<T>(const kiln_frame*, const T*, int64_t, const Triangle&, T*, int64_t, \
                         int64_t, int64_t, T*);
KILN_INSTANTIATE(float)
KILN_INSTANTIATE(double)
KILN_INSTANTIATE(std::complex<float>)
KILN_INSTANTIATE(std::complex<double>)
#undef KILN_INSTANTIATE

}  // namespace kiln::runtime::lib::linear

#include "runtime/lib/linear/kernels.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

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
  return lower ? DecomposeLarge<T, Eigen::RowMajor>(frame, a, n)
               : DecomposeLarge<T, Eigen::ColMajor>(frame, a, n);
}

template <typename T>
void Solve(const kiln_frame* frame, const T* a, int64_t n, const Triangle& t, T* b, int64_t columns,
           int64_t row_stride, int64_t column_stride, T* scratch) {
  const bool lower = t.lower != t.transposed;
  if (n >= kSmall && Unfold(a, n, t, scratch)) {
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

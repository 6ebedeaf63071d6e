#include "runtime/lib/linear/reflected.h"

#include <algorithm>
#include <cmath>

namespace kiln::runtime::lib::linear {
namespace {

template <typename T>
std::unique_ptr<T[]> Place(int64_t size) {
  return std::make_unique_for_overwrite<T[]>(static_cast<size_t>(size));
}

}  // namespace

template <typename T>
T ReflectionInPlace(const Loops<T>& loops, T* x, int64_t n) {
  double alpha = x[0], square = loops.square(x + 1, n - 1);
  // Squares in range, as are all of f32.
  constexpr double kMost = 1e280, kLargest = 1e140;
  if (!(square > 1 / kMost && square < kMost && std::abs(alpha) < kLargest) &&
      !std::isnan(alpha + square)) {
    const double largest = std::abs(static_cast<double>(x[loops.largest(x, n)]));
    if (square == 0 && largest == std::abs(alpha)) {
      const bool is_zero = std::all_of(x + 1, x + n, [](T y) { return y == 0; });
      if (is_zero) return 0;
    }
    if (std::isfinite(largest)) {
      const int power = std::clamp(std::ilogb(largest), -1020, 1020);
      for (int64_t i = 0; i < n; ++i) x[i] = static_cast<T>(std::ldexp(x[i], -power));
      const T tau = loops.square(x + 1, n - 1) > 1 / kMost ? ReflectionInPlace(loops, x, n) : T(0);
      // Beside an element near 1, those without a square are as good as 0.
      if (tau == 0) std::fill(x + 1, x + n, T(0));
      x[0] = static_cast<T>(std::ldexp(x[0], power));
      return tau;
    }
  }
  const double beta = -std::copysign(std::sqrt(alpha * alpha + square), alpha);
  const double scale = 1 / (alpha - beta);
  for (int64_t i = 1; i < n; ++i) x[i] = static_cast<T>(x[i] * scale);
  x[0] = static_cast<T>(beta);
  return static_cast<T>((beta - alpha) / beta);
}
template float ReflectionInPlace<float>(const Loops<float>&, float*, int64_t);
template double ReflectionInPlace<double>(const Loops<double>&, double*, int64_t);

template <typename T>
Reflected<T>::Reflected(Blocked<T>& blocked, int64_t rows, int64_t columns)
    : blocked_(blocked),
      stride_((rows + 15) / 16 * 16 + 16),
      columns_((columns + 15) / 16 * 16),
      v_(Place<T>(stride_ * kWidth)),
      across_(Place<T>(rows * kWidth)),
      products_(Place<T>(2 * kWidth * columns_)) {}

template <typename T>
void Reflected<T>::Factor(T* a, int64_t stride, int64_t rows, int64_t width, T* taus) {
  const Loops<T>& loops = blocked_.loops();
  loops.transpose(a, stride, rows, width, v_.get(), stride_);
  for (int64_t k = 0; k < std::min(rows, width); ++k) {
    T* const x = v_.get() + k * (stride_ + 1);
    taus[k] = ReflectionInPlace(loops, x, rows - k);
    const T first = x[0];
    x[0] = 1;
    loops.reflect_columns(x + stride_, stride_, rows - k, width - k - 1, x, taus[k]);
    x[0] = first;
  }
  loops.transpose(v_.get(), stride_, width, rows, a, stride);
  rows_ = rows;
  width_ = width;
  Combine(taus);
}

template <typename T>
void Reflected<T>::Read(const T* a, int64_t stride, int64_t rows, int64_t width, const T* taus) {
  blocked_.loops().transpose(a, stride, rows, width, v_.get(), stride_);
  rows_ = rows;
  width_ = width;
  Combine(taus);
}

// Column k of T is tau, and above it -tau T V^T v.
template <typename T>
void Reflected<T>::Combine(const T* taus) {
  for (int64_t k = 0; k < width_; ++k) {
    T* column = v_.get() + k * stride_;
    std::fill(column, column + k, T(0));
    column[k] = 1;
  }
  T square[kWidth * kWidth] = {};  // -V^T V
  blocked_.loops().transpose(v_.get(), stride_, width_, rows_, across_.get(), width_);
  blocked_.Subtract(square, kWidth, width_, width_, across_.get(), width_, rows_, v_.get(), 1,
                    stride_);
  std::fill_n(t_, kWidth * kWidth, T(0));
  for (int64_t k = 0; k < width_; ++k) {
    for (int64_t i = 0; i < k; ++i) {
      T sum = 0;
      for (int64_t j = i; j < k; ++j) sum += t_[i * kWidth + j] * square[k * kWidth + j];
      t_[i * kWidth + k] = taus[k] * sum;
    }
    t_[k * kWidth + k] = taus[k];
  }
}

template <typename T>
void Reflected<T>::Apply(T* c, int64_t stride, int64_t columns, bool transposed) {
  if (columns == 0) return;
  T *const product = products_.get(), *const other = product + kWidth * columns_;
  std::fill_n(product, 2 * kWidth * columns_, T(0));
  blocked_.Subtract(product, columns_, width_, columns, c, stride, rows_, v_.get(), 1, stride_);
  blocked_.Subtract(other, columns_, width_, columns, product, columns_, width_, t_,
                    transposed ? kWidth : 1, transposed ? 1 : kWidth);
  blocked_.Subtract(c, stride, rows_, columns, other, columns_, width_, v_.get(), stride_, 1);
}

template class Reflected<float>;
template class Reflected<double>;

}  // namespace kiln::runtime::lib::linear

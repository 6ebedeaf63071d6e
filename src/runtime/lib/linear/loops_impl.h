// The loops, for vectors of KILN_LINEAR_BYTES bytes, in the namespace KILN_LINEAR_NAMESPACE.
// Everything here is local to the including file, which is compiled for other instructions than the
// library.
#include <cstdint>
#include <utility>

#include "runtime/lib/linear/loops.h"

namespace kiln::runtime::lib::linear {
namespace KILN_LINEAR_NAMESPACE {
namespace {

template <typename T>
struct Vector {
  typedef T Type __attribute__((vector_size(KILN_LINEAR_BYTES), aligned(sizeof(T)), may_alias));
  static constexpr int64_t kWidth = KILN_LINEAR_BYTES / static_cast<int64_t>(sizeof(T));
};

// All sweeps on a panel of kVectors vectors of rows: a column stays in registers between two
// rotations.
template <typename T, int kVectors>
inline void RotatePanel(T* z, int64_t stride, const Sweep* sweeps, int64_t count, const T* cosines,
                        const T* sines) {
  using V = typename Vector<T>::Type;
  constexpr int64_t kWidth = Vector<T>::kWidth;
  auto at = [&](int64_t column, int vector) {
    return reinterpret_cast<V*>(z + column * stride + vector * kWidth);
  };
  V kept[kVectors];
  for (int64_t i = 0; i < count; ++i) {
    const Sweep& sweep = sweeps[i];
    const int64_t last = sweep.first + sweep.count;
    if (sweep.backward) {
      for (int v = 0; v < kVectors; ++v) kept[v] = *at(last, v);
      for (int64_t k = sweep.count; k-- > 0;) {
        const T c = cosines[k], s = sines[k];
        for (int v = 0; v < kVectors; ++v) {
          const V x = *at(sweep.first + k, v);
          *at(sweep.first + k + 1, v) = c * kept[v] - s * x;
          kept[v] = c * x + s * kept[v];
        }
      }
      for (int v = 0; v < kVectors; ++v) *at(sweep.first, v) = kept[v];
    } else {
      for (int v = 0; v < kVectors; ++v) kept[v] = *at(sweep.first, v);
      for (int64_t k = 0; k < sweep.count; ++k) {
        const T c = cosines[k], s = sines[k];
        for (int v = 0; v < kVectors; ++v) {
          const V y = *at(sweep.first + k + 1, v);
          *at(sweep.first + k, v) = c * kept[v] + s * y;
          kept[v] = c * y - s * kept[v];
        }
      }
      for (int v = 0; v < kVectors; ++v) *at(last, v) = kept[v];
    }
    cosines += sweep.count;
    sines += sweep.count;
  }
}

constexpr int kPanel = 4;

template <typename T>
void Rotate(T* z, int64_t stride, int64_t rows, const Sweep* sweeps, int64_t count,
            const T* cosines, const T* sines) {
  constexpr int64_t kWidth = Vector<T>::kWidth;
  int64_t row = 0;
  for (; row + kPanel * kWidth <= rows; row += kPanel * kWidth) {
    RotatePanel<T, kPanel>(z + row, stride, sweeps, count, cosines, sines);
  }
  for (; row < rows; row += kWidth) {
    RotatePanel<T, 1>(z + row, stride, sweeps, count, cosines, sines);
  }
}

template <typename T>
double Square(const T* x, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

template <typename T>
T Dot(const T* x, const T* y, int64_t n) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

template <typename T>
void ReflectColumns(T* a, int64_t stride, int64_t rows, int64_t columns, const T* v, T tau) {
  int64_t j = 0;
  for (; j + 4 <= columns; j += 4, a += 4 * stride) {
    T *b = a + stride, *c = b + stride, *d = c + stride;
    T p = 0, q = 0, r = 0, s = 0;
#pragma omp simd reduction(+ : p, q, r, s)
    for (int64_t i = 0; i < rows; ++i) {
      p += a[i] * v[i];
      q += b[i] * v[i];
      r += c[i] * v[i];
      s += d[i] * v[i];
    }
    p *= tau;
    q *= tau;
    r *= tau;
    s *= tau;
#pragma omp simd
    for (int64_t i = 0; i < rows; ++i) {
      a[i] -= p * v[i];
      b[i] -= q * v[i];
      c[i] -= r * v[i];
      d[i] -= s * v[i];
    }
  }
  for (; j < columns; ++j, a += stride) {
    const T p = tau * Dot(a, v, rows);
#pragma omp simd
    for (int64_t i = 0; i < rows; ++i) a[i] -= p * v[i];
  }
}

template <typename T>
void ReflectRows(T* a, int64_t stride, int64_t rows, int64_t columns, const T* v, T tau, T* work) {
#pragma omp simd
  for (int64_t i = 0; i < rows; ++i) work[i] = 0;
  // Both passes: the product with v, and its subtraction.
  for (int pass = 0; pass < 2; ++pass) {
    int64_t j = 0;
    for (; j + 4 <= columns; j += 4) {
      T *x = a + j * stride, *y = x + stride, *z = y + stride, *w = z + stride;
      const T p = v[j], q = v[j + 1], r = v[j + 2], s = v[j + 3];
      if (pass == 0) {
#pragma omp simd
        for (int64_t i = 0; i < rows; ++i) work[i] += p * x[i] + q * y[i] + r * z[i] + s * w[i];
      } else {
#pragma omp simd
        for (int64_t i = 0; i < rows; ++i) {
          const T product = tau * work[i];
          x[i] -= p * product;
          y[i] -= q * product;
          z[i] -= r * product;
          w[i] -= s * product;
        }
      }
    }
    for (; j < columns; ++j) {
      T* x = a + j * stride;
      const T p = v[j];
      if (pass == 0) {
#pragma omp simd
        for (int64_t i = 0; i < rows; ++i) work[i] += p * x[i];
      } else {
#pragma omp simd
        for (int64_t i = 0; i < rows; ++i) x[i] -= p * tau * work[i];
      }
    }
  }
}

template <typename T>
void UpdateAndMultiply(T* a, int64_t stride, int64_t n, const T* v, const T* w, const T* u,
                       T* product) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) product[i] = 0;
  int64_t j = 0;
  auto element = [&](int64_t row, int64_t column) {
    T& x = a[row + column * stride];
    x -= v[row] * w[column] + w[row] * v[column];
    product[row] += x * u[column];
    if (row != column) product[column] += x * u[row];
  };
  for (; j + 2 <= n; j += 2) {
    element(j, j);
    element(j + 1, j);
    element(j + 1, j + 1);
    T *x = a + j * stride, *y = x + stride;
    const T vx = v[j], wx = w[j], ux = u[j], vy = v[j + 1], wy = w[j + 1], uy = u[j + 1];
    T p = 0, q = 0;
#pragma omp simd reduction(+ : p, q)
    for (int64_t i = j + 2; i < n; ++i) {
      const T xi = x[i] - v[i] * wx - w[i] * vx;
      const T yi = y[i] - v[i] * wy - w[i] * vy;
      x[i] = xi;
      y[i] = yi;
      product[i] += xi * ux + yi * uy;
      p += xi * u[i];
      q += yi * u[i];
    }
    product[j] += p;
    product[j + 1] += q;
  }
  if (j < n) element(j, j);
}

#include "runtime/lib/linear/lanes_impl.h"
#include "runtime/lib/linear/product_impl.h"

template <typename T>
constexpr Loops<T> kLoops = {Vector<T>::kWidth,
                             Rotate<T>,
                             Square<T>,
                             Dot<T>,
                             ReflectColumns<T>,
                             ReflectRows<T>,
                             UpdateAndMultiply<T>,
                             SubtractProduct<T>,
                             SolveRows<T>,
                             SubtractOuter<T>,
                             Largest<T>,
                             Transpose<T>,
                             {Vector<T>::kWidth, LoadBlock<T>, StoreBlock<T>, CholeskyOfLanes<T>,
                              SolveInLanes<T>, LuOfLanes<T>, QrOfLanes<T>, ProductOfLanes<T>}};

}  // namespace

extern const Loops<float>* const f32;
extern const Loops<double>* const f64;
const Loops<float>* const f32 = &kLoops<float>;
const Loops<double>* const f64 = &kLoops<double>;

}  // namespace KILN_LINEAR_NAMESPACE
}  // namespace kiln::runtime::lib::linear

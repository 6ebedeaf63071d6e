#include "runtime/lib/linear/factors.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "runtime/lib/linear/blocked.h"
#include "runtime/lib/linear/reflected.h"

namespace kiln::runtime::lib::linear {
namespace {

template <typename T>
T* DataOf(const Array& array) {
  return reinterpret_cast<T*>(array.data);
}

// By the textbook.
template <typename T>
void SmallLu(T* a, int64_t m, int64_t n, int32_t* pivots) {
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < m; ++i) {
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
    }
    pivots[k] = static_cast<int32_t>(pivot);
    T* const row = a + k * n;
    if (pivot != k) std::swap_ranges(row, row + n, a + pivot * n);
    const T head = row[k];
    for (int64_t i = k + 1; i < m; ++i) {
      T* const other = a + i * n;
      if (head != 0) other[k] /= head;
      for (int64_t j = k + 1; j < n; ++j) other[j] -= other[k] * row[j];
    }
  }
}

// The row of the operand for each row of the factors, and info: from 1, the first column with a
// pivot of 0.
template <typename T>
void DescribeLu(const T* a, int64_t m, int64_t n, const int32_t* pivots, int32_t* order,
                int32_t* info) {
  const int64_t steps = std::min(m, n);
  std::iota(order, order + m, 0);
  for (int64_t i = 0; i < steps; ++i) std::swap(order[i], order[pivots[i]]);
  *info = 0;
  for (int64_t i = steps; i-- > 0;) {
    if (a[i * (n + 1)] == 0) *info = static_cast<int32_t>(i + 1);
  }
}

// Results are the factors, pivots from 0, and what DescribeLu says.
template <typename T>
void LuOf(const Letters& letters, std::span<const Array> operands, std::span<const Array> results) {
  const int64_t m = operands[0].rows, n = operands[0].columns;
  T* const a = DataOf<T>(results[0]);
  if (operands[0].data != results[0].data) std::copy_n(DataOf<T>(operands[0]), m * n, a);
  auto* const pivots = DataOf<int32_t>(results[1]);
  if (std::min(m, n) < kSmall) {
    SmallLu(a, m, n, pivots);
  } else {
    Blocked<T>(letters.frame).Lu(a, n, m, n, pivots);
  }
  DescribeLu(a, m, n, pivots, DataOf<int32_t>(results[2]), DataOf<int32_t>(results[3]));
}

// I - tau v v^T from the left, for v = (1, tail) of a column of a.
template <typename T>
void ReflectSmall(const T* v, int64_t stride, int64_t rows, T tau, T* c, int64_t c_stride,
                  int64_t columns) {
  T sums[kSmall];
  std::copy_n(c, columns, sums);
  for (int64_t i = 1; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) sums[j] += v[i * stride] * c[i * c_stride + j];
  }
  for (int64_t j = 0; j < columns; ++j) {
    sums[j] *= tau;
    c[j] -= sums[j];
  }
  for (int64_t i = 1; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) c[i * c_stride + j] -= v[i * stride] * sums[j];
  }
}

template <typename T>
void SmallQr(T* a, int64_t m, int64_t n, T* taus) {
  const Loops<T>& loops = LoopsOfMachine<T>();
  T column[kSmall];
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    T* const corner = a + k * (n + 1);
    for (int64_t i = k; i < m; ++i) column[i - k] = a[i * n + k];
    taus[k] = ReflectionInPlace(loops, column, m - k);
    for (int64_t i = k; i < m; ++i) a[i * n + k] = column[i - k];
    ReflectSmall(corner, n, m - k, taus[k], corner + 1, n, n - k - 1);
  }
}

template <typename T>
void SmallProduct(const T* a, int64_t m, int64_t n, const T* taus, int64_t count, T* q) {
  for (int64_t k = count; k-- > 0;) {
    ReflectSmall(a + k * (n + 1), n, m - k, taus[k], q + k * (n + 1), n, n - k);
  }
}

// Results are R above the tails of the reflections, and the taus.
template <typename T>
void QrOf(const Letters& letters, std::span<const Array> operands, std::span<const Array> results) {
  const int64_t m = operands[0].rows, n = operands[0].columns, steps = std::min(m, n);
  T *const a = DataOf<T>(results[0]), *const taus = DataOf<T>(results[1]);
  if (operands[0].data != results[0].data) std::copy_n(DataOf<T>(operands[0]), m * n, a);
  if (m < kSmall && n < kSmall) return SmallQr(a, m, n, taus);
  Blocked<T> blocked(letters.frame);
  Reflected<T> block(blocked, m, n);
  for (int64_t k = 0; k < steps; k += Reflected<T>::kWidth) {
    const int64_t width = std::min(Reflected<T>::kWidth, steps - k);
    T* const corner = a + k * (n + 1);
    block.Factor(corner, n, m - k, width, taus + k);
    block.Apply(corner + width, n, n - k - width, /*transposed=*/true);
  }
}

// c = Q c or Q^T c for the reflections of `count` columns of a; if `is_identity`, c is one, and its
// known zeros are left out.
template <typename T>
void Apply(const kiln_frame* frame, const T* a, int64_t stride, int64_t rows, const T* taus,
           int64_t count, T* c, int64_t columns, bool transposed, bool is_identity) {
  Blocked<T> blocked(frame);
  Reflected<T> block(blocked, rows, columns);
  constexpr int64_t kWidth = Reflected<T>::kWidth;
  const int64_t blocks = (count + kWidth - 1) / kWidth;
  for (int64_t step = 0; step < blocks; ++step) {
    const int64_t k = (transposed ? step : blocks - 1 - step) * kWidth;
    const int64_t left = is_identity ? k : 0;
    block.Read(a + k * (stride + 1), stride, rows - k, std::min(kWidth, count - k), taus + k);
    block.Apply(c + k * columns + left, columns, columns - left, transposed);
  }
}

// The first columns of the product of reflections.
template <typename T>
void ProductOf(const Letters& letters, std::span<const Array> operands,
               std::span<const Array> results) {
  const int64_t m = operands[0].rows, n = operands[0].columns, count = operands[1].rows;
  T* const q = DataOf<T>(results[0]);
  const T* const from = DataOf<T>(operands[0]);
  const std::vector<T> a(from, from + m * n);
  std::fill_n(q, m * n, T(0));
  for (int64_t i = 0; i < n; ++i) q[i * (n + 1)] = 1;
  if (m < kSmall) return SmallProduct(a.data(), m, n, DataOf<T>(operands[1]), count, q);
  Apply(letters.frame, a.data(), n, m, DataOf<T>(operands[1]), count, q, n, /*transposed=*/false,
        /*is_identity=*/true);
}

// Q C, Q^T C, C Q or C Q^T, for Q the product of the operand's reflections in their order.
template <typename T>
void ByReflections(const Letters& letters, std::span<const Array> operands,
                   std::span<const Array> results) {
  const Array &reflections = operands[0], &c = operands[2];
  T* const to = DataOf<T>(results[0]);
  auto apply = [&](T* x, int64_t columns, bool transposed) {
    Apply(letters.frame, DataOf<T>(reflections), reflections.columns, reflections.rows,
          DataOf<T>(operands[1]), operands[1].rows, x, columns, transposed, /*is_identity=*/false);
  };
  if (letters.left) {
    if (c.data != results[0].data) std::copy_n(DataOf<T>(c), c.rows * c.columns, to);
    return apply(to, c.columns, letters.transposed);
  }
  // The transpose of Q^T C^T or Q C^T.
  const Loops<T>& loops = LoopsOfMachine<T>();
  std::vector<T> turned(static_cast<size_t>(c.rows * c.columns));
  loops.transpose(DataOf<T>(c), c.columns, c.rows, c.columns, turned.data(), c.rows);
  apply(turned.data(), c.rows, !letters.transposed);
  loops.transpose(turned.data(), c.rows, c.columns, c.rows, to, c.columns);
}

// Blocks of `elements` vectors for the lanes of one call, at addresses that vectors like.
template <typename T>
class Work {
 public:
  explicit Work(int64_t elements)
      : memory_(std::make_unique_for_overwrite<std::byte[]>(
            static_cast<size_t>((elements + 1) * kMostLaneBytes))) {
    void* at = memory_.get();
    size_t space = static_cast<size_t>((elements + 1) * kMostLaneBytes);
    next_ = static_cast<T*>(std::align(kMostLaneBytes, 1, at, space));
  }
  T* Take(int64_t elements) {
    T* const block = next_;
    next_ += elements * lanes.width;
    return block;
  }

  const Lanes<T>& lanes = LoopsOfMachine<T>().lanes;

 private:
  const std::unique_ptr<std::byte[]> memory_;
  T* next_;
};

// f(first matrix, matrices) for block after block of a call.
template <typename F>
void ForEachBlock(int64_t count, int64_t width, F&& f) {
  for (int64_t i = 0; i < count; i += width) f(i, std::min(width, count - i));
}

template <typename T>
void LuInLanes(std::span<const Array> operands, std::span<const Array> results, int64_t count) {
  const int64_t m = operands[0].rows, n = operands[0].columns, steps = std::min(m, n);
  T* const to = DataOf<T>(results[0]);
  auto *pivots = DataOf<int32_t>(results[1]), *order = DataOf<int32_t>(results[2]);
  Work<T> work(m * n + steps);
  const int64_t width = work.lanes.width;
  T *const a = work.Take(m * n), *const rows = work.Take(steps);
  ForEachBlock(count, width, [&](int64_t i, int64_t matrices) {
    LoadLanes(work.lanes, DataOf<T>(operands[0]) + i * m * n, m * n, matrices, a);
    work.lanes.lu(a, m, n, rows);
    StoreLanes(work.lanes, a, m * n, matrices, to + i * m * n);
    StoreLanes(work.lanes, rows, steps, matrices, pivots + i * steps);
    for (int64_t k = i; k < i + matrices; ++k) {
      DescribeLu(to + k * m * n, m, n, pivots + k * steps, order + k * m,
                 DataOf<int32_t>(results[3]) + k);
    }
  });
}

template <typename T>
void QrInLanes(std::span<const Array> operands, std::span<const Array> results, int64_t count) {
  const int64_t m = operands[0].rows, n = operands[0].columns, steps = std::min(m, n);
  Work<T> work(m * n + steps);
  const int64_t width = work.lanes.width;
  T *const a = work.Take(m * n), *const taus = work.Take(steps);
  ForEachBlock(count, width, [&](int64_t i, int64_t matrices) {
    LoadLanes(work.lanes, DataOf<T>(operands[0]) + i * m * n, m * n, matrices, a);
    work.lanes.qr(a, m, n, taus);
    StoreLanes(work.lanes, a, m * n, matrices, DataOf<T>(results[0]) + i * m * n);
    StoreLanes(work.lanes, taus, steps, matrices, DataOf<T>(results[1]) + i * steps);
  });
}

template <typename T>
void ProductInLanes(std::span<const Array> operands, std::span<const Array> results,
                    int64_t count) {
  const int64_t m = operands[0].rows, n = operands[0].columns, steps = operands[1].rows;
  Work<T> work(2 * m * n + steps);
  const int64_t width = work.lanes.width;
  T *const a = work.Take(m * n), *const q = work.Take(m * n), *const taus = work.Take(steps);
  ForEachBlock(count, width, [&](int64_t i, int64_t matrices) {
    LoadLanes(work.lanes, DataOf<T>(operands[0]) + i * m * n, m * n, matrices, a);
    LoadLanes(work.lanes, DataOf<T>(operands[1]) + i * steps, steps, matrices, taus);
    work.lanes.product(a, m, n, taus, steps, q);
    StoreLanes(work.lanes, q, m * n, matrices, DataOf<T>(results[0]) + i * m * n);
  });
}

// f32 or f64.
template <Kernel kSingle, Kernel kDouble>
void OfType(const Letters& letters, std::span<const Array> operands,
            std::span<const Array> results) {
  const bool is_single = operands[0].type == ElementType::kF32;
  return (is_single ? kSingle : kDouble)(letters, operands, results);
}
template <LaneKernel kSingle, LaneKernel kDouble>
void InLanesOfType(std::span<const Array> operands, std::span<const Array> results, int64_t count) {
  const bool is_single = operands[0].type == ElementType::kF32;
  return (is_single ? kSingle : kDouble)(operands, results, count);
}

}  // namespace

Kernels RealLu() {
  return {OfType<LuOf<float>, LuOf<double>>, nullptr,
          InLanesOfType<LuInLanes<float>, LuInLanes<double>>};
}
Kernels RealQr() {
  return {OfType<QrOf<float>, QrOf<double>>, nullptr,
          InLanesOfType<QrInLanes<float>, QrInLanes<double>>};
}
Kernels RealProductOfReflections() {
  return {OfType<ProductOf<float>, ProductOf<double>>, nullptr,
          InLanesOfType<ProductInLanes<float>, ProductInLanes<double>>};
}
Kernel RealByReflections() { return OfType<ByReflections<float>, ByReflections<double>>; }

}  // namespace kiln::runtime::lib::linear

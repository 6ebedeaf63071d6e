#include "runtime/lib/linear/real.h"

#include <numeric>
#include <utility>

#include "runtime/lib/linear/reflected.h"

namespace kiln::runtime::lib::linear {

template <typename T>
Normal<T> ReadNormal(const Array& array, bool transposed, char triangle) {
  const T* from = reinterpret_cast<const T*>(array.data);
  const int64_t rows = array.rows, columns = array.columns;
  auto begin_of = [&](int64_t i) { return triangle == 'U' ? i : 0; };
  auto end_of = [&](int64_t i) { return triangle == 'L' ? i + 1 : columns; };
  Normal<T> made;
  T largest = 0;
  for (int64_t i = 0; i < rows; ++i) {
    bool is_finite = true;
    for (int64_t j = begin_of(i); j < end_of(i); ++j) {
      const T size = std::abs(from[i * columns + j]);
      is_finite &= size <= std::numeric_limits<T>::max();
      largest = std::max(largest, size);
    }
    made.is_finite &= is_finite;
  }
  if (!made.is_finite) return made;
  if (largest > 0) {
    made.power = std::ldexp(1.0, std::clamp(std::ilogb(static_cast<double>(largest)), -1020, 1020));
  }
  const double factor = 1 / made.power;
  made.matrix = transposed ? Columns<T>(columns, rows) : Columns<T>(rows, columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = begin_of(i); j < end_of(i); ++j) {
      const T x = static_cast<T>(static_cast<double>(from[i * columns + j]) * factor);
      (transposed ? made.matrix(j, i) : made.matrix(i, j)) = x;
    }
  }
  return made;
}

template <typename T>
Reflection<T> ReflectionOf(T* x, int64_t n) {
  const T tau = ReflectionInPlace(LoopsOfMachine<T>(), x, n);
  const Reflection<T> made = {tau, x[0]};
  x[0] = 1;
  return made;
}

template <typename T>
Columns<T> ProductOf(Columns<T>& reflections, std::span<const T> taus, int64_t offset,
                     int64_t columns) {
  const int64_t n = reflections.rows();
  Columns<T> product = Columns<T>::Identity(n, columns);
  for (auto k = static_cast<int64_t>(taus.size()); k-- > 0;) {
    const int64_t row = k + offset;
    if (row >= n || row >= columns) continue;
    LoopsOfMachine<T>().reflect_columns(product.at(row, row), product.stride(), n - row,
                                        columns - row, reflections.at(row, k),
                                        taus[static_cast<size_t>(k)]);
  }
  return product;
}

template <typename T>
RealSingular<T> Decomposed(Columns<T> matrix, bool vectors, int64_t u_columns) {
  const Loops<T>& loops = LoopsOfMachine<T>();
  const int64_t m = matrix.rows(), n = matrix.columns();
  Columns<T> rows(n, n);  // the reflections of rows, as columns
  std::vector<T> left(static_cast<size_t>(n)), right(static_cast<size_t>(n));
  std::vector<T> work(static_cast<size_t>(m));
  std::vector<double> values(left.size()), off(left.size());
  for (int64_t k = 0; k < n; ++k) {
    const int64_t below = m - k, behind = n - k - 1;
    const auto at = static_cast<size_t>(k);
    const Reflection<T> down = ReflectionOf(matrix.at(k, k), below);
    left[at] = down.tau;
    values[at] = down.first;
    if (behind == 0) break;
    loops.reflect_columns(matrix.at(k, k + 1), matrix.stride(), below, behind, matrix.at(k, k),
                          down.tau);
    T* row = rows.at(k + 1, k);
    for (int64_t j = 0; j < behind; ++j) row[j] = matrix(k, k + 1 + j);
    const Reflection<T> across = ReflectionOf(row, behind);
    right[at] = across.tau;
    off[at] = across.first;
    if (across.tau != 0) {
      loops.reflect_rows(matrix.at(k + 1, k + 1), matrix.stride(), below - 1, behind, row,
                         across.tau, work.data());
    }
  }
  RealSingular<T> found;
  if (vectors) {
    found.u = ProductOf<T>(matrix, left, 0, u_columns);
    found.v = ProductOf<T>(rows, right, 1, n);
  }
  Rotations u(&found.u), v(&found.v);
  found.converged = BidiagonalSingularValues(values, off, std::numeric_limits<T>::epsilon(),
                                             vectors ? &u : nullptr, vectors ? &v : nullptr);
  found.values = std::move(values);
  return found;
}

std::vector<int64_t> OrderOf(std::span<const double> values, bool descending) {
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  auto value = [&](int64_t i) { return values[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return descending ? std::abs(value(a)) > std::abs(value(b)) : value(a) < value(b);
  });
  return order;
}

#define KILN_INSTANTIATE(T)                                                            \
  template Normal<T> ReadNormal<T>(const Array&, bool, char);                          \
  template Reflection<T> ReflectionOf<T>(T*, int64_t);                                 \
  template Columns<T> ProductOf<T>(Columns<T>&, std::span<const T>, int64_t, int64_t); \
  template RealSingular<T> Decomposed<T>(Columns<T>, bool, int64_t);
KILN_INSTANTIATE(float)
KILN_INSTANTIATE(double)
#undef KILN_INSTANTIATE

}  // namespace kiln::runtime::lib::linear

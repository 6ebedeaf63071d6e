// Decompositions of real matrices block by block, with the loops of each vector width.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/strings.h"
#include "runtime/lib/linear/blocked.h"
#include "runtime/lib/linear/factors.h"
#include "runtime/lib/linear/kernels.h"
#include "runtime/lib/linear/reflected.h"

namespace kiln::runtime::lib::linear {
namespace {

template <typename T>
constexpr double kEpsilon = std::numeric_limits<T>::epsilon();

template <typename T>
std::vector<T> RandomOf(int64_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  std::normal_distribution<double> normal;
  std::vector<T> made(static_cast<size_t>(size));
  for (T& x : made) x = static_cast<T>(normal(random));
  return made;
}

// f(loops, name) for each vector width that the machine has.
template <typename T, typename F>
void ForLoops(F&& f) {
  for (LoopVectors vectors : {LoopVectors::kBase, LoopVectors::kAvx2, LoopVectors::kAvx512}) {
    const Loops<T>* loops = LoopsOf<T>(vectors);
    SCOPED_TRACE(static_cast<int>(vectors));
    if (loops) f(*loops);
  }
}

// Element (i, j) of the product of l and u, row-major with such strides, over `depth`.
template <typename L, typename U>
double Sum(int64_t depth, L&& l, U&& u) {
  double sum = 0;
  for (int64_t k = 0; k < depth; ++k) sum += static_cast<double>(l(k)) * static_cast<double>(u(k));
  return sum;
}

template <typename T>
void CheckProduct(const Loops<T>& loops, int64_t rows, int64_t columns, int64_t depth,
                  bool turned) {
  const kiln_frame frame{};
  Blocked<T> blocked(&frame, loops);
  const int64_t stride = columns + 3;  // what is behind the columns stays
  std::vector<T> c = RandomOf<T>(rows * stride), given = c;
  const std::vector<T> a = RandomOf<T>(depth * columns), b = RandomOf<T>(depth * rows);
  const int64_t b_row = turned ? 1 : rows, b_column = turned ? depth : 1;
  blocked.Subtract(c.data(), stride, rows, columns, a.data(), columns, depth, b.data(), b_row,
                   b_column);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < stride; ++j) {
      const auto at = static_cast<size_t>(i * stride + j);
      const double sum = j >= columns
                             ? 0
                             : Sum(
                                   depth, [&](int64_t k) { return b[k * b_row + i * b_column]; },
                                   [&](int64_t k) { return a[k * columns + j]; });
      ASSERT_NEAR(c[at], given[at] - sum, 20 * kEpsilon<T> * std::sqrt(depth) * 4) << i << " " << j;
    }
  }
}

template <typename T>
void CheckProducts() {
  ForLoops<T>([](const Loops<T>& loops) {
    for (bool turned : {false, true}) {
      CheckProduct(loops, 1, 1, 1, turned);
      CheckProduct(loops, 7, 31, 5, turned);
      CheckProduct(loops, 8, 96, 8, turned);
      CheckProduct(loops, 9, 200, 260, turned);
      CheckProduct(loops, 530, 33, 17, turned);
    }
  });
}

TEST(BlockedFactors, Products) {
  CheckProducts<float>();
  CheckProducts<double>();
}

template <typename T>
void CheckLu(const Loops<T>& loops, int64_t m, int64_t n) {
  const kiln_frame frame{};
  const int64_t steps = std::min(m, n);
  std::vector<T> a = RandomOf<T>(m * n), lu = a;
  std::vector<int32_t> pivots(static_cast<size_t>(steps));
  Blocked<T>(&frame, loops).Lu(lu.data(), n, m, n, pivots.data());
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t pivot = pivots[static_cast<size_t>(i)];
    ASSERT_TRUE(pivot >= i && pivot < m) << pivot;
    if (pivot != i) std::swap_ranges(&a[i * n], &a[i * n] + n, &a[pivot * n]);
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      if (j < i) ASSERT_LE(std::abs(lu[i * n + j]), 1 + 2 * kEpsilon<T>);
      double sum = Sum(
          std::min({i, j + 1, steps}), [&](int64_t k) { return lu[i * n + k]; },
          [&](int64_t k) { return lu[k * n + j]; });
      if (i <= j) sum += lu[i * n + j];
      ASSERT_NEAR(sum, a[i * n + j], 5 * static_cast<double>(steps) * kEpsilon<T>) << i << " " << j;
    }
  }
}

TEST(BlockedFactors, Lu) {
  constexpr int64_t kSizes[][2] = {{24, 24},   {33, 33},  {64, 64},  {129, 129},
                                   {200, 200}, {300, 70}, {70, 300}, {130, 24}};
  for (const auto [m, n] : kSizes) {
    ForLoops<float>([&](const Loops<float>& loops) { CheckLu(loops, m, n); });
    ForLoops<double>([&](const Loops<double>& loops) { CheckLu(loops, m, n); });
  }
}

template <typename T>
void CheckCholesky(const Loops<T>& loops, int64_t n) {
  const kiln_frame frame{};
  const std::vector<T> x = RandomOf<T>(n * n);
  std::vector<T> a(x.size(), T(7)), u;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i; j < n; ++j) {
      const double sum = Sum(
          n, [&](int64_t k) { return x[i * n + k]; }, [&](int64_t k) { return x[j * n + k]; });
      a[i * n + j] = static_cast<T>(sum / static_cast<double>(n) + (i == j ? 1 : 0));
    }
  }
  u = a;
  ASSERT_TRUE(Blocked<T>(&frame, loops).Cholesky(u.data(), n, n));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      if (j < i) {
        ASSERT_EQ(u[i * n + j], 7);
        continue;
      }
      const double sum = Sum(
          i + 1, [&](int64_t k) { return u[k * n + i]; }, [&](int64_t k) { return u[k * n + j]; });
      ASSERT_NEAR(sum, a[i * n + j], 30 * kEpsilon<T>) << i << " " << j;
    }
  }
  a[(n - 1) * (n + 1)] = -1;
  EXPECT_FALSE(Blocked<T>(&frame, loops).Cholesky(a.data(), n, n));
  a[(n - 1) * (n + 1)] = std::numeric_limits<T>::quiet_NaN();
  EXPECT_FALSE(Blocked<T>(&frame, loops).Cholesky(a.data(), n, n));
}

TEST(BlockedFactors, Cholesky) {
  for (int64_t n : {1, 8, 24, 33, 100, 150}) {
    ForLoops<float>([&](const Loops<float>& loops) { CheckCholesky(loops, n); });
    ForLoops<double>([&](const Loops<double>& loops) { CheckCholesky(loops, n); });
  }
}

// All triangles, for right sides in both orders.
template <typename T>
void CheckSolve(int64_t n, int64_t columns, const Triangle& t, bool by_rows) {
  const kiln_frame frame{};
  std::vector<T> a = RandomOf<T>(n * n), b = RandomOf<T>(n * columns), scratch(a.size());
  for (T& x : a) x /= static_cast<T>(n);
  for (int64_t i = 0; i < n; ++i) a[i * (n + 1)] += 2;
  std::vector<T> x = b;
  const int64_t row = by_rows ? columns : 1, column = by_rows ? 1 : n;
  Solve(&frame, a.data(), n, t, x.data(), columns, row, column, scratch.data());
  auto element = [&](int64_t i, int64_t j) -> double {
    if (i == j && t.unit_diagonal) return 1;
    const bool is_inside = t.lower ? j <= i : j >= i;
    return is_inside ? a[i * n + j] : 0;
  };
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t i = 0; i < n; ++i) {
      const double sum = Sum(
          n, [&](int64_t k) { return t.transposed ? element(k, i) : element(i, k); },
          [&](int64_t k) { return x[k * row + c * column]; });
      ASSERT_NEAR(sum, b[i * row + c * column], 100 * kEpsilon<T>) << i << " " << c;
    }
  }
}

TEST(BlockedFactors, Solve) {
  for (int64_t n : {24, 41, 150}) {
    for (int64_t columns : {1, 3, 5, 40}) {
      for (int bits = 0; bits < 16; ++bits) {
        SCOPED_TRACE(Cat(n, " ", columns, " ", bits));
        Triangle t;
        t.lower = bits & 1;
        t.unit_diagonal = bits & 2;
        t.transposed = bits & 4;
        CheckSolve<float>(n, columns, t, bits & 8);
        CheckSolve<double>(n, columns, t, bits & 8);
      }
    }
  }
}

// The reflections of a QR, applied from both sides: Q^T A = R, and A^T Q = R^T.
template <typename T>
void CheckReflections(int64_t m, int64_t n) {
  const kiln_frame frame{};
  Letters letters;
  letters.frame = &frame;
  const int64_t steps = std::min(m, n);
  std::vector<T> a = RandomOf<T>(m * n), turned(a.size()), r(a.size()), found(a.size());
  std::vector<T> taus(static_cast<size_t>(steps));
  for (int64_t i = 0; i < m * n; ++i) turned[(i % n) * m + i / n] = a[i];
  auto array = [](std::vector<T>& x, int64_t rows, int64_t columns) -> Array {
    const ElementType type = std::is_same_v<T, float> ? ElementType::kF32 : ElementType::kF64;
    return {type, rows, columns, reinterpret_cast<std::byte*>(x.data())};
  };
  const std::vector<Array> given = {array(a, m, n)},
                           factors = {array(r, m, n), array(taus, steps, 1)};
  RealQr().real(letters, given, factors);
  for (bool left : {true, false}) {
    letters.left = letters.transposed = left;
    const Array c = left ? array(a, m, n) : array(turned, n, m);
    const std::vector<Array> operands = {factors[0], factors[1], c},
                             results = {array(found, c.rows, c.columns)};
    RealByReflections()(letters, operands, results);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const T x = left ? found[i * n + j] : found[j * m + i];
        ASSERT_NEAR(x, i <= j ? r[i * n + j] : 0, 5 * static_cast<double>(m) * kEpsilon<T>)
            << i << " " << j << " " << left;
      }
    }
  }
}

TEST(BlockedFactors, Reflections) {
  constexpr int64_t kSizes[][2] = {{5, 5}, {24, 24}, {33, 33}, {100, 40}, {40, 100}, {130, 129}};
  for (const auto [m, n] : kSizes) {
    SCOPED_TRACE(Cat(m, " ", n));
    CheckReflections<float>(m, n);
    CheckReflections<double>(m, n);
  }
}

// Columns whose squares are out of range.
TEST(BlockedFactors, Extremes) {
  const Loops<double>& loops = LoopsOfMachine<double>();
  for (double scale : {1.0, 1e-300, 1e300, 1e-160, 1e160}) {
    std::vector<double> x = {3 * scale, 0, 4 * scale};
    EXPECT_NEAR(ReflectionInPlace(loops, x.data(), 3), 1.6, 1e-15);
    EXPECT_NEAR(x[0] / scale, -5, 1e-14);
    EXPECT_EQ(x[1], 0);
    EXPECT_NEAR(x[2], 0.5, 1e-15);
  }
  std::vector<double> none = {2, 0, 0};
  EXPECT_EQ(ReflectionInPlace(loops, none.data(), 3), 0);
  EXPECT_EQ(none[0], 2);
  std::vector<double> nan = {std::nan(""), 1, 2};
  EXPECT_TRUE(std::isnan(ReflectionInPlace(loops, nan.data(), 3)));
}

}  // namespace
}  // namespace kiln::runtime::lib::linear

// Eigenvalues of symmetric and singular values of real matrices, and their loops for each vector
// width.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "runtime/lib/linear/iterations.h"
#include "runtime/lib/linear/lapack_call.h"

namespace kiln::runtime::lib::linear {
namespace {

// In row-major order.
template <typename T>
struct Dense {
  Dense(int64_t rows, int64_t columns)
      : rows(rows), columns(columns), data(static_cast<size_t>(rows * columns)) {}
  T& operator()(int64_t i, int64_t j) { return data[static_cast<size_t>(i * columns + j)]; }
  T operator()(int64_t i, int64_t j) const { return data[static_cast<size_t>(i * columns + j)]; }
  Array array() {
    const bool is_single = std::is_same_v<T, float>;
    return {is_single ? ElementType::kF32 : ElementType::kF64, rows, columns,
            reinterpret_cast<std::byte*>(data.data())};
  }

  int64_t rows, columns;
  std::vector<T> data;
};

enum class Kind { kRandom, kLowRank, kZero, kIdentity, kGraded, kTiny, kHuge, kOnes, kBidiagonal };
constexpr Kind kKinds[] = {Kind::kRandom,   Kind::kLowRank, Kind::kZero,
                           Kind::kIdentity, Kind::kGraded,  Kind::kTiny,
                           Kind::kHuge,     Kind::kOnes,    Kind::kBidiagonal};

template <typename T>
Dense<T> Made(Kind kind, int64_t m, int64_t n) {
  std::mt19937 random(static_cast<unsigned>(m * 100 + n));
  std::normal_distribution<double> normal;
  Dense<T> a(m, n);
  const double extreme = std::ldexp(1.0, std::numeric_limits<T>::max_exponent - 6);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double x = kind == Kind::kLowRank ? std::sin(0.7 * i) * std::cos(0.3 * j) : normal(random);
      if (kind == Kind::kGraded) x *= std::pow(10, -30.0 * static_cast<double>(i + j) / (m + n));
      if (kind == Kind::kTiny) x /= extreme;
      if (kind == Kind::kHuge) x = std::clamp(x, -3.0, 3.0) * extreme / 8;
      if (kind == Kind::kZero) x = 0;
      if (kind == Kind::kOnes) x = 1;
      if (kind == Kind::kIdentity) x = i == j;
      if (kind == Kind::kBidiagonal) x = i == j ? (i % 3) * i : j == i + 1;
      a(i, j) = static_cast<T>(x);
    }
  }
  return a;
}

// The largest element of x diag(values) y - a, by the largest of a.
template <typename T>
double Residual(const Dense<T>& x, const std::vector<T>& values, const Dense<T>& y,
                const Dense<T>& a) {
  double largest = 0, scale = std::numeric_limits<double>::min();
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) {
      double sum = 0;
      for (size_t k = 0; k < values.size(); ++k) {
        const auto at = static_cast<int64_t>(k);
        sum += static_cast<double>(x(i, at)) * values[k] * y(at, j);
      }
      largest = std::max(largest, std::abs(sum - a(i, j)));
      scale = std::max(scale, std::abs(static_cast<double>(a(i, j))));
    }
  }
  return largest / scale;
}

template <typename T>
Dense<T> Transposed(const Dense<T>& a) {
  Dense<T> made(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) made(j, i) = a(i, j);
  }
  return made;
}

// How far columns are from orthogonal ones.
template <typename T>
double Skewness(const Dense<T>& x) {
  Dense<T> identity(x.columns, x.columns);
  for (int64_t i = 0; i < x.columns; ++i) identity(i, i) = 1;
  return Residual(Transposed(x), std::vector<T>(static_cast<size_t>(x.rows), T(1)), x, identity);
}

template <typename T>
class RealMatrices : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RealMatrices, Types);

TYPED_TEST(RealMatrices, Eigenvalues) {
  using T = TypeParam;
  for (const Kind kind : kKinds) {
    for (const int64_t n : {1, 2, 3, 16, 37, 70}) {
      for (const bool lower : {true, false}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(kind)) + " " + std::to_string(n));
        Dense<T> a = Made<T>(kind, n, n), given = a;
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < i; ++j) {
            a(i, j) = a(j, i) = lower ? given(i, j) : given(j, i);
            (lower ? given(j, i) : given(i, j)) = 777;  // not to be read
          }
        }
        Dense<T> vectors(n, n), values(n, 1), only(n, 1);
        int32_t info = -1;
        const Array code{ElementType::kS32, 1, 1, reinterpret_cast<std::byte*>(&info)};
        const std::vector<Array> operand = {given.array()};
        Letters letters;
        letters.lower = lower;
        SelfAdjointKernels().real(letters, operand,
                                  std::vector<Array>{vectors.array(), only.array(), code});
        ASSERT_EQ(info, 0);
        letters.vectors = true;
        SelfAdjointKernels().real(letters, operand,
                                  std::vector<Array>{vectors.array(), values.array(), code});
        ASSERT_EQ(info, 0);
        EXPECT_EQ(values.data, only.data);
        EXPECT_TRUE(std::is_sorted(values.data.begin(), values.data.end()));
        const double bound =
            8 * std::sqrt(static_cast<double>(n)) * std::numeric_limits<T>::epsilon();
        EXPECT_LE(Residual(vectors, values.data, Transposed(vectors), a), n * bound);
        EXPECT_LE(Skewness(vectors), bound);
      }
    }
  }
}

TYPED_TEST(RealMatrices, SingularValues) {
  using T = TypeParam;
  const std::pair<int64_t, int64_t> sizes[] = {{1, 1},   {2, 2},   {3, 3},  {16, 16},
                                               {37, 37}, {70, 70}, {50, 9}, {9, 50}};
  for (const Kind kind : kKinds) {
    for (const auto& [m, n] : sizes) {
      for (const bool all : {true, false}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(kind)) + " " + std::to_string(m) + " " +
                     std::to_string(n));
        Dense<T> a = Made<T>(kind, m, n);
        const int64_t k = std::min(m, n);
        Dense<T> copy(m, n), values(k, 1), only(k, 1), u(m, all ? m : k), v(all ? n : k, n);
        int32_t info = -1;
        const Array code{ElementType::kS32, 1, 1, reinterpret_cast<std::byte*>(&info)};
        const std::vector<Array> operand = {a.array()};
        auto decompose = [&](const Letters& letters, Dense<T>& to) {
          SingularKernels(true).real(
              letters, operand,
              std::vector<Array>{copy.array(), to.array(), u.array(), v.array(), code});
        };
        decompose(Letters{}, only);
        ASSERT_EQ(info, 0);
        Letters letters;
        letters.all = all;
        letters.vectors = true;
        decompose(letters, values);
        ASSERT_EQ(info, 0);
        EXPECT_EQ(copy.data, a.data);
        EXPECT_EQ(values.data, only.data);
        EXPECT_TRUE(std::is_sorted(values.data.rbegin(), values.data.rend()));
        EXPECT_GE(values.data.back(), 0);
        const double bound =
            8 * std::sqrt(static_cast<double>(m + n)) * std::numeric_limits<T>::epsilon();
        EXPECT_LE(Residual(u, values.data, v, a), static_cast<double>(m + n) * bound);
        EXPECT_LE(Skewness(u), bound);
        EXPECT_LE(Skewness(Transposed(v)), bound);
      }
    }
  }
}

// The product of a rotation by each width of vectors is that of the formula.
TYPED_TEST(RealMatrices, LoopsOfEachWidth) {
  using T = TypeParam;
  constexpr int64_t kRows = 83, kColumns = 11;
  for (const LoopVectors vectors : {LoopVectors::kBase, LoopVectors::kAvx2, LoopVectors::kAvx512}) {
    const Loops<T>* loops = LoopsOf<T>(vectors);
    if (loops == nullptr) continue;
    SCOPED_TRACE(static_cast<int>(vectors));
    Columns<T> z(kRows, kColumns);
    const Dense<T> values = Made<T>(Kind::kRandom, kRows, kColumns);
    std::vector<double> expected(values.data.begin(), values.data.end());
    auto at = [&](int64_t i, int64_t j) -> double& {
      return expected[static_cast<size_t>(i * kColumns + j)];
    };
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < kColumns; ++j) z(i, j) = values(i, j);
    }
    const Sweep sweeps[] = {{1, 9, true}, {0, 10, false}};
    std::vector<T> cosines, sines;
    for (int k = 0; k < 19; ++k) {
      cosines.push_back(static_cast<T>(std::cos(k)));
      sines.push_back(static_cast<T>(std::sin(k)));
    }
    auto rotate = [&](int64_t column, size_t k) {
      for (int64_t i = 0; i < kRows; ++i) {
        const double x = at(i, column), y = at(i, column + 1);
        at(i, column) = cosines[k] * x + sines[k] * y;
        at(i, column + 1) = cosines[k] * y - sines[k] * x;
      }
    };
    for (int64_t k = 9; k-- > 0;) rotate(1 + k, static_cast<size_t>(k));
    for (int64_t k = 0; k < 10; ++k) rotate(k, static_cast<size_t>(9 + k));
    const int64_t rows =
        (kRows + loops->row_multiple - 1) / loops->row_multiple * loops->row_multiple;
    loops->rotate(z.at(0, 0), z.stride(), rows, sweeps, 2, cosines.data(), sines.data());

    std::vector<T> v(kRows), work(kRows);
    for (int64_t i = 0; i < kRows; ++i)
      v[static_cast<size_t>(i)] = static_cast<T>(std::sin(0.1 * i));
    loops->reflect_columns(z.at(0, 0), z.stride(), kRows, kColumns, v.data(), T(0.25));
    for (int64_t j = 0; j < kColumns; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < kRows; ++i) sum += v[static_cast<size_t>(i)] * at(i, j);
      for (int64_t i = 0; i < kRows; ++i) at(i, j) -= 0.25 * sum * v[static_cast<size_t>(i)];
    }
    loops->reflect_rows(z.at(0, 0), z.stride(), kRows, kColumns, v.data(), T(0.5), work.data());
    for (int64_t i = 0; i < kRows; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < kColumns; ++j) sum += v[static_cast<size_t>(j)] * at(i, j);
      for (int64_t j = 0; j < kColumns; ++j) at(i, j) -= 0.5 * sum * v[static_cast<size_t>(j)];
    }
    const double bound = 1000 * std::numeric_limits<T>::epsilon();
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < kColumns; ++j) EXPECT_NEAR(z(i, j), at(i, j), bound) << i << " " << j;
    }
  }
}

}  // namespace
}  // namespace kiln::runtime::lib::linear

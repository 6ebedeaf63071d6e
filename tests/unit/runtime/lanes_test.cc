// Decompositions in lanes, for each vector width: every lane has a matrix of its own.
#include "runtime/lib/linear/lanes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/strings.h"
#include "runtime/lib/linear/loops.h"

namespace kiln::runtime::lib::linear {
namespace {

// Lane l has a matrix times 10^(l's power), so that squares leave the range of the type in some.
template <typename T>
class Matrices {
 public:
  Matrices(int64_t rows, int64_t columns, int64_t width, unsigned seed, bool scaled)
      : columns_(columns), width_(width), data_(static_cast<size_t>(rows * columns * width)) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    const int powers[] = {0, -30, 30, -5};
    for (size_t k = 0; k < data_.size(); ++k) {
      const double power = scaled ? std::pow(10.0, powers[k % static_cast<size_t>(width) % 4]) : 1;
      data_[k] = static_cast<T>(normal(random) * power);
    }
  }

  T& operator()(int64_t i, int64_t j, int64_t lane) {
    return data_[static_cast<size_t>((i * columns_ + j) * width_ + lane)];
  }
  T* data() { return data_.data(); }

 private:
  int64_t columns_, width_;
  std::vector<T> data_;
};

template <typename T, typename F>
void ForEachWidth(F&& f) {
  for (LoopVectors vectors : {LoopVectors::kBase, LoopVectors::kAvx2, LoopVectors::kAvx512}) {
    const Loops<T>* loops = LoopsOf<T>(vectors);
    if (!loops) continue;
    SCOPED_TRACE(Cat("width ", loops->lanes.width));
    EXPECT_EQ(loops->lanes.width, loops->row_multiple);
    f(loops->lanes);
  }
}

// |x - y| for the sums of x in terms of the size of what is summed.
template <typename T>
void ExpectNear(double x, double y, double size) {
  EXPECT_LE(std::abs(x - y), 40 * std::numeric_limits<T>::epsilon() * size) << x << " and " << y;
}

template <typename T>
void CheckLu(const Lanes<T>& lanes, int64_t m, int64_t n) {
  Matrices<T> a(m, n, lanes.width, 1, true), f = a;
  const int64_t steps = std::min(m, n);
  std::vector<T> pivots(static_cast<size_t>(steps * lanes.width));
  lanes.lu(f.data(), m, n, pivots.data());
  for (int64_t lane = 0; lane < lanes.width; ++lane) {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < m; ++i) order.push_back(i);
    for (int64_t k = 0; k < steps; ++k) {
      const auto pivot = static_cast<size_t>(pivots[static_cast<size_t>(k * lanes.width + lane)]);
      std::swap(order[static_cast<size_t>(k)], order[pivot]);
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0, size = 0;
        for (int64_t k = 0; k <= std::min({i, j, steps - 1}); ++k) {
          const double l = k == i ? 1 : static_cast<double>(f(i, k, lane));
          if (k < i) EXPECT_LE(std::abs(l), 1);
          sum += l * static_cast<double>(f(k, j, lane));
          size += std::abs(l * static_cast<double>(f(k, j, lane)));
        }
        ExpectNear<T>(sum, a(order[static_cast<size_t>(i)], j, lane), size);
      }
    }
  }
}

template <typename T>
void CheckQr(const Lanes<T>& lanes, int64_t m, int64_t n) {
  Matrices<T> a(m, n, lanes.width, 2, true), r = a, q(m, n, lanes.width, 3, false);
  std::vector<T> taus(static_cast<size_t>(std::min(m, n) * lanes.width));
  lanes.qr(r.data(), m, n, taus.data());
  if (m < n) return;
  lanes.product(r.data(), m, n, taus.data(), n, q.data());
  for (int64_t lane = 0; lane < lanes.width; ++lane) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < m; ++k) sum += static_cast<double>(q(k, i, lane)) * q(k, j, lane);
        ExpectNear<T>(sum, i == j ? 1 : 0, 1);
      }
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0, size = 0;
        for (int64_t k = 0; k <= j; ++k) sum += static_cast<double>(q(i, k, lane)) * r(k, j, lane);
        for (int64_t k = 0; k < m; ++k) size += std::abs(static_cast<double>(a(k, j, lane)));
        ExpectNear<T>(sum, a(i, j, lane), size);
      }
    }
  }
}

template <typename T>
void CheckCholesky(const Lanes<T>& lanes, int64_t n, bool lower) {
  Matrices<T> a(n, n, lanes.width, 4, false), l = a;
  for (int64_t lane = 0; lane < lanes.width; ++lane) {
    for (int64_t i = 0; i < n; ++i) {
      l(i, i, lane) = a(i, i, lane) = static_cast<T>(lane == 2 && i == n - 1 ? -1 : 3 * n + i);
    }
  }
  lanes.cholesky(l.data(), n, lower);
  for (int64_t lane = 0; lane < lanes.width; ++lane) {
    auto factor = [&](int64_t i, int64_t j) -> double {
      return lower ? l(i, j, lane) : l(j, i, lane);
    };
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        if (lane == 2) {
          EXPECT_TRUE(std::isnan(l(i, j, lane)));
          continue;
        }
        double sum = 0;
        for (int64_t k = 0; k < n; ++k) sum += factor(i, k) * factor(j, k);
        if (j > i) EXPECT_EQ(factor(i, j), 0);
        if (j > i) continue;
        ExpectNear<T>(sum, lower ? a(i, j, lane) : a(j, i, lane), 4 * n);
      }
    }
  }
}

template <typename T>
void CheckSolve(const Lanes<T>& lanes, int64_t n, int64_t sides, bool lower, bool unit) {
  Matrices<T> a(n, n, lanes.width, 5, false), b(n, sides, lanes.width, 6, true), x = b;
  for (int64_t lane = 0; lane < lanes.width; ++lane) {
    for (int64_t i = 0; i < n; ++i) a(i, i, lane) = static_cast<T>(3 * n);
    if (unit) {
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) a(i, j, lane) /= static_cast<T>(4 * n);
      }
    }
  }
  lanes.solve(a.data(), n, n, 1, lower, unit, x.data(), sides, sides, 1);
  for (int64_t lane = 0; lane < lanes.width; ++lane) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t c = 0; c < sides; ++c) {
        double sum = 0, size = 0;
        for (int64_t j = 0; j < n; ++j) {
          if (lower ? j > i : j < i) continue;
          const double factor = i == j && unit ? 1 : static_cast<double>(a(i, j, lane));
          sum += factor * x(j, c, lane);
          size += std::abs(factor * x(j, c, lane));
        }
        ExpectNear<T>(sum, b(i, c, lane), size);
      }
    }
  }
}

template <typename T>
void CheckAll() {
  ForEachWidth<T>([](const Lanes<T>& lanes) {
    for (auto [m, n] : {std::pair<int64_t, int64_t>{1, 1}, {3, 3}, {5, 2}, {2, 6}, {23, 23}}) {
      SCOPED_TRACE(Cat(m, " x ", n));
      CheckLu(lanes, m, n);
      CheckQr(lanes, m, n);
      for (bool flag : {true, false}) {
        CheckCholesky(lanes, n, flag);
        for (bool unit : {true, false}) CheckSolve(lanes, n, m, flag, unit);
      }
    }
  });
}

// Blocks of all matrices, and of fewer, come back as they were, and nothing else is touched.
TEST(Lanes, BlocksAreLoadedAndStored) {
  ForEachWidth<float>([](const Lanes<float>& lanes) {
    for (int64_t elements : {1, 4, 9, 16, 17, 100}) {
      for (int64_t matrices : {int64_t{1}, lanes.width - 1, lanes.width}) {
        SCOPED_TRACE(Cat(matrices, " of ", elements));
        const auto size = static_cast<size_t>(matrices * elements);
        std::vector<float> from(size), to(size + 1, -1);
        for (size_t k = 0; k < size; ++k) from[k] = static_cast<float>(k);
        std::vector<float> block(static_cast<size_t>(elements * lanes.width));
        lanes.load(from.data(), elements, matrices, block.data());
        for (int64_t lane = 0; lane < lanes.width; ++lane) {
          const int64_t matrix = std::min(lane, matrices - 1);
          for (int64_t e = 0; e < elements; ++e) {
            EXPECT_EQ(block[static_cast<size_t>(e * lanes.width + lane)],
                      from[static_cast<size_t>(matrix * elements + e)]);
          }
        }
        lanes.store(block.data(), elements, matrices, to.data());
        EXPECT_EQ(to.back(), -1);
        to.pop_back();
        EXPECT_EQ(to, from);
      }
    }
  });
}

TEST(Lanes, F32) { CheckAll<float>(); }
TEST(Lanes, F64) { CheckAll<double>(); }

// The largest element that is a number is the pivot, a row of zeros stays, and infinities and NaNs
// stay in their lanes.
TEST(Lanes, StrangeElements) {
  ForEachWidth<float>([](const Lanes<float>& lanes) {
    const float inf = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    Matrices<float> a(2, 2, lanes.width, 7, false);
    auto set = [&](int64_t lane, float x, float y, float z, float w) {
      a(0, 0, lane) = x, a(0, 1, lane) = y, a(1, 0, lane) = z, a(1, 1, lane) = w;
    };
    set(0, 0, 0, 0, 0);
    set(1, 1, 2, nan, 3);
    set(2, 1, 2, inf, 3);
    set(3, 1, 2, -4, 8);
    Matrices<float> f = a;
    std::vector<float> pivots(static_cast<size_t>(2 * lanes.width));
    lanes.lu(f.data(), 2, 2, pivots.data());
    for (int64_t lane : {0, 1}) EXPECT_EQ(pivots[static_cast<size_t>(lane)], 0);
    for (int64_t lane : {2, 3}) EXPECT_EQ(pivots[static_cast<size_t>(lane)], 1);
    EXPECT_EQ(f(1, 1, 0), 0);
    EXPECT_TRUE(std::isnan(f(1, 0, 1)) && std::isnan(f(1, 1, 1)));
    EXPECT_EQ(f(1, 0, 2), 0);
    EXPECT_EQ(f(1, 1, 3), 4);
    std::vector<float> taus(static_cast<size_t>(2 * lanes.width));
    Matrices<float> r = a;
    lanes.qr(r.data(), 2, 2, taus.data());
    EXPECT_EQ(taus[0], 0);
    EXPECT_EQ(r(0, 0, 0), 0);
    for (int64_t lane : {1, 2}) EXPECT_TRUE(std::isnan(r(1, 1, lane)));
    EXPECT_NEAR(r(0, 0, 3), -std::sqrt(17.0F), 1e-5);
  });
}

}  // namespace
}  // namespace kiln::runtime::lib::linear

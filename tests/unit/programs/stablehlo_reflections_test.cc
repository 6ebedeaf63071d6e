// Forms by reflections, and tridiagonal systems, by LAPACK's functions, judged by what they are
// for.
#include "support/lapack_calls.h"

namespace kiln::stablehlo::lapack {
namespace {

TEST(StablehloLapack, HessenbergForms) {
  for (ElementType t : kTypes) {
    const double epsilon = Epsilon(t);
    for (const auto& [batch, n] : kSquares) {
      if (n == 0) continue;
      Check(Hessenberg(t, batch, n, 1, n), [&](const Item& item) {
        const Matrix &a = item.in[0], &packed = item.out[0];
        const Matrix q = Product(packed, item.out[1], 1);
        const Matrix h =
            Make(n, n, [&](int64_t i, int64_t j) { return i > j + 1 ? Wide(0) : packed(i, j); });
        ExpectUnitary(q, epsilon);
        ExpectClose(q * h * Adjoint(q), a, 30 * epsilon * Norm(a));
        for (int64_t i = 1; i < n; ++i) EXPECT_EQ(h(i, i - 1).imag(), 0);
        EXPECT_EQ(item.out[2](0, 0), 0.0);
      });
    }
  }
  // Rows and columns outside of the range are taken for triangular.
  Check(Hessenberg(ElementType::kF64, {}, 6, 2, 5), [&](const Item& item) {
    const Matrix &packed = item.out[0], &taus = item.out[1];
    EXPECT_EQ(taus(0, 0), 0.0);
    EXPECT_EQ(taus(4, 0), 0.0);
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_NEAR(packed(i, 0).real(), item.in[0](i, 0).real(), 1e-14);
    EXPECT_NEAR(packed(5, 4).real(), item.in[0](5, 4).real(), 1e-14);
    EXPECT_NE(taus(1, 0), 0.0);
  });
}

TEST(StablehloLapack, TridiagonalForms) {
  for (ElementType t : kTypes) {
    const double epsilon = Epsilon(t);
    for (const auto& [batch, n] : kSquares) {
      if (n == 0) continue;
      for (char uplo : {'L', 'U'}) {
        Check(ToTridiagonal(t, batch, n, uplo), [&](const Item& item) {
          const Matrix &packed = item.out[0], &d = item.out[1], &e = item.out[2];
          const bool lower = uplo == 'L';
          Matrix a = Whole(item.in[0], uplo), x = packed, taus = item.out[3];
          if (!lower) {
            // The product of the reflections from the last to the first: as those of the lower
            // triangle, from the last row and column on.
            x = Make(n, n, [&](int64_t i, int64_t j) { return packed(n - 1 - i, n - 1 - j); });
            taus = Make(n - 1, 1, [&](int64_t i, int64_t) { return item.out[3](n - 2 - i, 0); });
          }
          Matrix q = Product(x, taus, 1);
          if (!lower) {
            q = Make(n, n, [&, r = q](int64_t i, int64_t j) { return r(n - 1 - i, n - 1 - j); });
          }
          const Matrix form = Make(n, n, [&](int64_t i, int64_t j) -> Wide {
            if (i == j) return d(i, 0);
            return std::abs(i - j) == 1 ? e(std::min(i, j), 0) : Wide(0);
          });
          ExpectUnitary(q, epsilon);
          ExpectClose(q * form * Adjoint(q), a, 30 * epsilon * Norm(a));
          for (int64_t i = 0; i < n; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              if (lower ? i < j : i > j) EXPECT_EQ(packed(i, j), item.in[0](i, j));
              if (lower ? i == j + 1 : j == i + 1) EXPECT_EQ(packed(i, j), e(std::min(i, j), 0));
            }
          }
          EXPECT_EQ(item.out[4](0, 0), 0.0);
        });
      }
    }
  }
}

TEST(StablehloLapack, PivotedQrs) {
  const std::pair<int64_t, int64_t> sizes[] = {{1, 1}, {5, 3}, {3, 5}, {20, 20}, {0, 2}, {2, 0}};
  for (ElementType t : kTypes) {
    const double epsilon = Epsilon(t);
    for (const auto& [m, n] : sizes) {
      const int64_t k = std::min(m, n);
      Check(PivotedQr(t, {2}, m, n), [&, m = m, n = n](const Item& item) {
        const Matrix &a = item.in[0], &packed = item.out[0], &order = item.out[1];
        const Matrix q = Product(packed, item.out[2], 0);
        const Matrix r =
            Make(m, n, [&](int64_t i, int64_t j) { return i > j ? Wide(0) : packed(i, j); });
        ExpectUnitary(q, epsilon);
        std::vector<int64_t> places;
        for (Wide place : order.elements) places.push_back(static_cast<int64_t>(place.real()) - 1);
        const Matrix moved =
            Make(m, n, [&](int64_t i, int64_t j) { return a(i, places[static_cast<size_t>(j)]); });
        ExpectClose(q * r, moved, 30 * epsilon * Norm(a));
        for (int64_t i = 1; i < k; ++i) {
          EXPECT_GE(std::abs(r(i - 1, i - 1)) * (1 + 10 * epsilon), std::abs(r(i, i)));
        }
        std::ranges::sort(places);
        for (int64_t i = 0; i < n; ++i) EXPECT_EQ(places[static_cast<size_t>(i)], i);
      });
    }
  }
  // The second column is to be the first one.
  Call call = PivotedQr(ElementType::kF64, {}, 2, 3);
  std::vector<Item> items;
  RunCall(call,
          {Literal::Array<double>(call.operands[0].shape(), std::vector<double>{1, 0, 9, 1, 2, 9}),
           Literal::Array<int32_t>(call.operands[1].shape(), std::vector<int32_t>{0, 1, 0})},
          items);
  ASSERT_EQ(items.size(), 1u);
  const std::vector<Wide> order = {2, 3, 1};
  EXPECT_EQ(items[0].out[1].elements, order);
}

TEST(StablehloLapack, ProductsWithReflections) {
  for (ElementType t : kTypes) {
    for (bool left : {true, false}) {
      for (bool transposed : {true, false}) {
        const int64_t m = 6, n = 4, size = left ? m : n;
        const Array c = {t, {3}, {m, n}};
        const Call call = {IsComplex(t) ? "unmqr" : "ormqr",
                           Cat("left = ", left ? "true" : "false",
                               ", transpose = ", transposed ? "true" : "false"),
                           {{t, {3}, {size, 3}}, {t, {3}, {3}}, c},
                           {c}};
        Check(call, [&](const Item& item) {
          Matrix q = Product(item.in[0], item.in[1], 0);
          if (transposed) q = Adjoint(q);
          const Matrix expected = left ? q * item.in[2] : item.in[2] * q;
          ExpectClose(item.out[0], expected, 100 * Epsilon(t) * Norm(q) * Norm(item.in[2]));
        });
      }
    }
  }
}

TEST(StablehloLapack, TridiagonalSystems) {
  for (ElementType t : kTypes) {
    for (const auto& [batch, n] : kSquares) {
      Check(Tridiagonal(t, batch, n, 3), [&, n = n](const Item& item) {
        const Matrix a = Make(n, n, [&](int64_t i, int64_t j) -> Wide {
          if (i == j) return item.in[1](i, 0);
          if (i == j + 1) return item.in[0](i, 0);
          return j == i + 1 ? item.in[2](i, 0) : Wide(0);
        });
        const Matrix &b = item.in[3], &x = item.out[3];
        ExpectClose(a * x, b, 50 * Epsilon(t) * (Norm(a) * Norm(x) + Norm(b)));
        EXPECT_EQ(item.out[4](0, 0), 0.0);
      });
    }
  }
}

}  // namespace
}  // namespace kiln::stablehlo::lapack

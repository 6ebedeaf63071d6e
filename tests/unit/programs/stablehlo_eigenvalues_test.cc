// Eigenvalues, singular values and Schur's form by LAPACK's functions, judged by what they are for.
#include "support/lapack_calls.h"

namespace kiln::stablehlo::lapack {
namespace {

TEST(StablehloLapack, SelfAdjointEigenvalues) {
  for (ElementType t : kTypes) {
    const double epsilon = Epsilon(t);
    for (const auto& [batch, n] : kSquares) {
      for (char uplo : {'L', 'U'}) {
        std::vector<Matrix> values;
        Check(SelfAdjoint(t, batch, n, 'V', uplo), [&](const Item& item) {
          const Matrix a = Whole(item.in[0], uplo);
          const Matrix &v = item.out[0], &w = item.out[1];
          ExpectUnitary(v, epsilon);
          ExpectClose(a * v, v * Diagonal(w), 20 * epsilon * Norm(a));
          for (int64_t i = 1; i < n; ++i) EXPECT_LE(w(i - 1, 0).real(), w(i, 0).real());
          EXPECT_EQ(item.out[2](0, 0), 0.0);
          values.push_back(w);
        });
        size_t next = 0;
        Check(SelfAdjoint(t, batch, n, 'N', uplo), [&](const Item& item) {
          ExpectClose(item.out[1], values[next++], 20 * epsilon * Norm(item.in[0]));
        });
      }
    }
  }
}

TEST(StablehloLapack, SingularValues) {
  struct Case {
    Sizes batch;
    int64_t m, n;
  };
  const Case cases[] = {{{}, 1, 1},   {{}, 5, 3},  {{2, 2}, 3, 5}, {{3}, 4, 4}, {{}, 40, 21},
                        {{}, 18, 37}, {{0}, 2, 3}, {{2}, 0, 3},    {{}, 3, 0}};
  for (ElementType t : kTypes) {
    const double epsilon = Epsilon(t);
    for (const Case& c : cases) {
      const int64_t k = std::min(c.m, c.n);
      for (const auto& [mode, name] : {std::pair{'A', "gesdd"},
                                       {'S', "gesdd"},
                                       {'N', "gesdd"},
                                       {'A', "gesvd"},
                                       {'S', "gesvd"},
                                       {'N', "gesvd"}}) {
        Check(Svd(name, t, c.batch, c.m, c.n, mode), [&, mode = mode](const Item& item) {
          const Matrix &a = item.in[0], &s = item.out[1], &u = item.out[2], &vh = item.out[3];
          double squares = 0;
          for (int64_t i = 0; i < k; ++i) {
            EXPECT_GE(s(i, 0).real(), 0);
            if (i > 0) EXPECT_GE(s(i - 1, 0).real(), s(i, 0).real());
            squares += std::norm(s(i, 0));
          }
          EXPECT_NEAR(std::sqrt(squares), Norm(a), 20 * epsilon * Norm(a));
          EXPECT_EQ(item.out[4](0, 0), 0.0);
          if (mode == 'N') return;
          ExpectUnitary(u, epsilon);
          ExpectUnitary(Adjoint(vh), epsilon);
          ExpectClose(Columns(u, k) * Diagonal(s) * Adjoint(Columns(Adjoint(vh), k)), a,
                      20 * epsilon * (Norm(a) + 1));
        });
      }
    }
  }
}

TEST(StablehloLapack, Eigenvalues) {
  for (ElementType t : kTypes) {
    const double epsilon = Epsilon(t);
    for (const auto& [batch, n] : kSquares) {
      Check(Eigen(t, batch, n), [&](const Item& item) {
        const Matrix& a = item.in[0];
        const size_t first = IsComplex(t) ? 1 : 2;
        const Matrix w = Make(n, 1, [&](int64_t i, int64_t) {
          return IsComplex(t) ? item.out[0](i, 0)
                              : Wide(item.out[0](i, 0).real(), item.out[1](i, 0).real());
        });
        const Matrix &left = item.out[first], &right = item.out[first + 1];
        const double bound = 50 * epsilon * (Norm(a) + 1);
        ExpectClose(a * right, right * Diagonal(w), bound);
        ExpectClose(Adjoint(left) * a, Diagonal(w) * Adjoint(left), bound);
        for (const Matrix* vectors : {&left, &right}) {
          for (int64_t j = 0; j < n; ++j) {
            const Matrix v = Make(n, 1, [&](int64_t i, int64_t) { return (*vectors)(i, j); });
            EXPECT_NEAR(Norm(v), 1, 10 * epsilon);
            const Wide largest =
                *std::ranges::max_element(v.elements, {}, [](Wide x) { return std::abs(x); });
            EXPECT_LE(std::abs(largest.imag()), epsilon);
            if (IsComplex(t)) continue;
            if (w(j, 0).imag() == 0) {
              for (Wide x : v.elements) EXPECT_EQ(x.imag(), 0);
            } else if (w(j, 0).imag() > 0) {
              ASSERT_LT(j + 1, n);
              EXPECT_EQ(w(j + 1, 0), std::conj(w(j, 0)));
              for (int64_t i = 0; i < n; ++i) {
                EXPECT_EQ((*vectors)(i, j + 1), std::conj((*vectors)(i, j)));
              }
            }
          }
        }
        EXPECT_EQ(item.out.back()(0, 0), 0.0);
      });
    }
  }
}

TEST(StablehloLapack, SchurForms) {
  for (ElementType t : kTypes) {
    const double epsilon = Epsilon(t);
    for (const auto& [batch, n] : kSquares) {
      Check(Schur(t, batch, n, 'V'), [&](const Item& item) {
        const Matrix &a = item.in[0], &s = item.out[0], &u = item.out[1];
        ExpectUnitary(u, epsilon);
        ExpectClose(u * s * Adjoint(u), a, 30 * epsilon * Norm(a));
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j + 1 < i; ++j) EXPECT_EQ(s(i, j), 0.0);
          if (i == 0 || s(i, i - 1) == 0.0) continue;
          // A block of 2 by 2, alone, in LAPACK's form.
          ASSERT_FALSE(IsComplex(t));
          EXPECT_EQ(s(i, i), s(i - 1, i - 1));
          EXPECT_LT(s(i, i - 1).real() * s(i - 1, i).real(), 0);
          if (i > 1) EXPECT_EQ(s(i - 1, i - 2), 0.0);
          const Matrix &re = item.out[2], &im = item.out[3];
          EXPECT_EQ(re(i, 0), s(i, i));
          EXPECT_NEAR(std::norm(im(i, 0)), -(s(i, i - 1) * s(i - 1, i)).real(),
                      30 * epsilon * std::norm(im(i, 0)));
          EXPECT_GT(im(i - 1, 0).real(), 0);
        }
        EXPECT_EQ(item.out.back()(0, 0), 0.0);
      });
    }
    Check(Schur(t, {}, 5, 'N'), [&](const Item& item) {
      Wide trace = 0, sum = 0;
      for (int64_t i = 0; i < 5; ++i) {
        trace += item.in[0](i, i);
        sum += item.out[2](i, 0);
      }
      EXPECT_LE(std::abs(trace - sum), 50 * epsilon * Norm(item.in[0]));
    });
  }
}

// Equal eigenvalues, with too few eigenvectors or with enough; no rank; blocks of complex ones.
TEST(StablehloLapack, SpecialMatrices) {
  constexpr int64_t n = 24;
  constexpr ElementType kF64 = ElementType::kF64;
  const auto jordan = [](int64_t i, int64_t j) { return i == j ? 2.0 : j == i + 1 ? 1.0 : 0.0; };
  const auto zero = [](int64_t, int64_t) { return 0.0; };
  const auto ones = [](int64_t, int64_t) { return 1.0; };
  const auto blocks = [](int64_t i, int64_t j) {
    if (i / 2 != j / 2) return 0.0;
    return i == j ? 1.0 : i < j ? 2.0 : -2.0;
  };
  const auto cycle = [](int64_t i, int64_t j) { return (i + 1) % n == j ? 1.0 : 0.0; };
  using Elements = double (*)(int64_t, int64_t);
  for (const Elements f :
       {Elements(jordan), Elements(zero), Elements(ones), Elements(blocks), Elements(cycle)}) {
    const Matrix a = Make(n, n, f);
    Literal given(Shape(kF64, std::vector<int64_t>{n, n}));
    for (int64_t i = 0; i < n * n; ++i)
      given.values<double>()[static_cast<size_t>(i)] = f(i / n, i % n);
    const double bound = 1e-13 * (Norm(a) + 1);
    std::vector<Item> eigen, schur, svd;
    RunCall(Eigen(kF64, {}, n), {given}, eigen);
    RunCall(Schur(kF64, {}, n, 'V'), {given}, schur);
    RunCall(Svd("gesdd", kF64, {}, n, n, 'A'), {given}, svd);
    ASSERT_TRUE(eigen.size() == 1 && schur.size() == 1 && svd.size() == 1);
    const std::vector<Matrix>& e = eigen[0].out;
    const Matrix w =
        Make(n, 1, [&](int64_t i, int64_t) { return Wide(e[0](i, 0).real(), e[1](i, 0).real()); });
    ExpectClose(a * e[3], e[3] * Diagonal(w), bound);
    ExpectClose(Adjoint(e[2]) * a, Diagonal(w) * Adjoint(e[2]), bound);
    const std::vector<Matrix>& s = schur[0].out;
    ExpectClose(s[1] * s[0] * Adjoint(s[1]), a, bound);
    const std::vector<Matrix>& v = svd[0].out;
    ExpectClose(v[2] * Diagonal(v[1]) * v[3], a, bound);
    ExpectUnitary(v[2], Epsilon(kF64));
    ExpectUnitary(Adjoint(v[3]), Epsilon(kF64));
  }
}

}  // namespace
}  // namespace kiln::stablehlo::lapack

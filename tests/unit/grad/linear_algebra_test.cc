// Derivatives of decompositions, triangular systems and Fourier transforms.
#include <gtest/gtest.h>

#include "unit/grad/check.h"

namespace kiln::grad {
namespace {

// x plus a number on the diagonal, so that the triangle is that of a positive definite matrix.
TEST(GradLinearAlgebra, Cholesky) {
  for (std::string_view lower : {"true", "false"}) {
    for (std::string_view type : {"f64", "c128"}) {
      const std::string shape = Cat(type, "[2,3,3]");
      ExpectDerivativesOf(
          Cat("x = ", shape, R"( parameter(0)
  i = s32[2,3,3] iota(), iota_dimension=1
  j = s32[2,3,3] iota(), iota_dimension=2
  is_diagonal = pred[2,3,3] compare(i, j), direction=EQ
  many = )",
              type, "[] constant(", type == "f64" ? "7" : "(7, 0)", ")\n  much = ", shape,
              " broadcast(many), dimensions={}\n  more = ", shape, " add(x, much)\n  a = ", shape,
              " select(is_diagonal, more, x)\n  ROOT r = ", shape, " cholesky(a), lower=", lower));
    }
  }
}

TEST(GradLinearAlgebra, TriangularSolve) {
  for (std::string_view type : {"f64", "c128"}) {
    for (std::string_view left : {"true", "false"}) {
      for (std::string_view lower : {"true", "false"}) {
        for (std::string_view unit : {"true", "false"}) {
          for (std::string_view op : {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}) {
            const std::string a = Cat(type, "[2,3,3]");
            const std::string x = Cat(type, left == "true" ? "[2,3,2]" : "[2,2,3]");
            ExpectDerivativesOf(
                Cat("z = ", a, R"( parameter(0)
  i = s32[2,3,3] iota(), iota_dimension=1
  j = s32[2,3,3] iota(), iota_dimension=2
  is_diagonal = pred[2,3,3] compare(i, j), direction=EQ
  three = )",
                    type, "[] constant(", type == "f64" ? "3" : "(3, 1)", ")\n  threes = ", a,
                    " broadcast(three), dimensions={}\n  more = ", a, " add(z, threes)\n  a = ", a,
                    " select(is_diagonal, more, z)\n  b = ", x, " parameter(1)\n  ROOT r = ", x,
                    " triangular-solve(a, b), left_side=", left, ", lower=", lower,
                    ", unit_diagonal=", unit, ", transpose_a=", op));
          }
        }
      }
    }
  }
}

struct Transform {
  std::string_view type, from, to, length;
};

TEST(GradLinearAlgebra, Fft) {
  constexpr Transform kTransforms[] = {
      {"FFT", "c128[2,5]", "c128[2,5]", "5"},
      {"IFFT", "c128[2,4]", "c128[2,4]", "4"},
      {"FFT", "c128[2,3,2]", "c128[2,3,2]", "2,3,2"},
      {"IFFT", "c128[2,3,2]", "c128[2,3,2]", "3,2"},
      {"RFFT", "f64[2,6]", "c128[2,4]", "6"},
      {"RFFT", "f64[5]", "c128[3]", "5"},
      {"RFFT", "f64[3,4]", "c128[3,3]", "3,4"},
      {"RFFT", "f64[2,3,5]", "c128[2,3,3]", "2,3,5"},
      {"IRFFT", "c128[2,4]", "f64[2,6]", "6"},
      {"IRFFT", "c128[3]", "f64[5]", "5"},
      {"IRFFT", "c128[1]", "f64[1]", "1"},
      {"IRFFT", "c128[2]", "f64[2]", "2"},
      {"IRFFT", "c128[3,3]", "f64[3,4]", "3,4"},
      {"IRFFT", "c128[2,3,3]", "f64[2,3,5]", "2,3,5"},
  };
  for (const Transform& t : kTransforms) {
    ExpectDerivativesOf(Cat("x = ", t.from, " parameter(0)\n  f = ", t.to,
                            " fft(x), fft_type=", t.type, ", fft_length={", t.length,
                            "}\n  ROOT r = ", t.to, " multiply(f, f)"));
  }
}

}  // namespace
}  // namespace kiln::grad

// Derivatives with symbolic and bounded dimensions.
#include <gtest/gtest.h>

#include "unit/grad/check.h"

namespace kiln::grad {
namespace {

TEST(GradSizes, SymbolicSlices) {
  const SymbolSizes sizes = {{"N", 4}, {"M", 3}};
  ExpectDerivativesOf(R"(
  x = f64[N,M] parameter(0)
  i = s32[5] constant({2, -7, 2, 9, 1})
  g = f64[5,M] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,M}
  ROOT r = f64[5,M] multiply(g, g))",
                      {}, sizes);
  for (std::string_view computation : {"add", "last", "max"}) {
    ExpectDerivativesOf(Cat(R"(
  x = f64[N,3] parameter(0)
  u = f64[M,3] parameter(1)
  two = s32[M] iota(), iota_dimension=0
  i = s32[M] multiply(two, two)
  s = f64[N,3] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=)",
                            computation, "\n  ROOT r = f64[N,3] multiply(s, s)"),
                        {}, sizes);
  }
  ExpectDerivativesOf(R"(
  x = f64[N,M] parameter(0)
  s = f64[N,M] sort(x), dimensions={1}, to_apply=less
  ROOT r = f64[N,M] multiply(s, s))",
                      {}, sizes);
}

TEST(GradSizes, SymbolicReductions) {
  const SymbolSizes sizes = {{"N", 4}, {"M", 3}};
  for (std::string_view computation : {"add", "max"}) {
    ExpectDerivativesOf(Cat(R"(
  x = f64[N,5,M] parameter(0)
  init = f64[] parameter(1)
  s = f64[5] reduce(x, init), dimensions={0,2}, to_apply=)",
                            computation, "\n  ROOT r = f64[5] sine(s)"),
                        {}, sizes);
  }
  ExpectDerivativesOf(R"(
  x = f64[N,5,M] parameter(0)
  one = f64[] constant(1)
  ROOT r = f64[N,M] reduce(x, one), dimensions={1}, to_apply=mul)",
                      {}, sizes);
  for (std::string_view init : {"constant(-inf)", "parameter(1)"}) {
    for (std::string_view computation : {"add", "mul", "max"}) {
      if (init != "parameter(1)" && computation != "max") continue;
      ExpectDerivativesOf(Cat("x = f64[N,6] parameter(0)\n  init = f64[] ", init, R"(
  s = f64[N,3] reduce-window(x, init), window={size=1x2 stride=1x2}, to_apply=)",
                              computation, "\n  ROOT r = f64[N,3] multiply(s, s)"),
                          {}, sizes);
    }
  }
  ExpectDerivativesOf(R"(
  x = f64[N,3] parameter(0)
  init = f64[] parameter(1)
  s = f64[N+1,3] reduce-window(x, init), window={size=3x1 pad=1_2x0_0}, to_apply=add
  ROOT r = f64[N+1,3] multiply(s, s))",
                      {}, sizes);
}

TEST(GradSizes, SymbolicBatches) {
  const SymbolSizes sizes = {{"N", 4}};
  for (std::string_view groups : {"", ", feature_group_count=2"}) {
    ExpectDerivativesOf(Cat("x = f64[N,4,5] parameter(0)\n  w = ",
                            groups.empty() ? "f64[2,4,3]" : "f64[2,2,3]", R"( parameter(1)
  c = f64[N,2,3] convolution(x, w), window={size=3 stride=2 pad=1_1}, dim_labels=bf0_oi0->bf0)",
                            groups, "\n  ROOT r = f64[N,2,3] multiply(c, c)"),
                        {}, sizes);
  }
  ExpectDerivativesOf(R"(
  x = f64[2*N,4,5] parameter(0)
  w = f64[2,4,3] parameter(1)
  c = f64[N,2,3] convolution(x, w), window={size=3 stride=2 pad=1_1}, dim_labels=bf0_oi0->bf0, batch_group_count=2
  ROOT r = f64[N,2,3] multiply(c, c))",
                      {}, sizes);
  ExpectDerivativesOf(R"(
  x = f64[N,3] parameter(0)
  scale = f64[3] parameter(1)
  offset = f64[3] parameter(2)
  n = (f64[N,3], f64[3], f64[3]) batch-norm-training(x, scale, offset), epsilon=0.1, feature_index=1
  y = f64[N,3] get-tuple-element(n), index=0
  ROOT s = f64[N,3] sine(y))",
                      {}, sizes);
  ExpectDerivativesOf(R"(
  a = f64[N,2,2] parameter(0)
  b = f64[N,2,2] parameter(1)
  ROOT r = f64[N,2,2] triangular-solve(a, b), left_side=true, lower=true, unit_diagonal=true, transpose_a=NO_TRANSPOSE)",
                      {}, sizes);
  ExpectDerivativesOf(R"(
  x = f64[N,6] parameter(0)
  f = c128[N,4] fft(x), fft_type=RFFT, fft_length={6}
  ROOT r = c128[N,4] multiply(f, f))",
                      {}, sizes);
}

TEST(GradSizes, SetDimensionSize) {
  // Cut, and extended.
  for (std::string_view size : {"2", "5"}) {
    ExpectDerivativesOf(Cat("x = f64[5,2] parameter(0)\n  n = s32[] constant(", size, R"()
  y = f64[<=5,2] set-dimension-size(x, n), dimensions={0}
  ROOT r = f64[<=5,2] multiply(y, y))"));
    ExpectDerivativesOf(Cat("x = f64[<=5,2] parameter(0)\n  n = s32[] constant(", size, R"()
  y = f64[<=5,2] set-dimension-size(x, n), dimensions={0}
  ROOT r = f64[<=5,2] multiply(y, y))"),
                        {Doubles({3, 2}, {1, 2, 3, 4, 5, 6})});
  }
}

TEST(GradSizes, Bounded) {
  const std::vector<Literal> x = {Doubles({3, 2}, {1, -2, 3, 4, 5, -6})};
  for (std::string_view computation : {"add", "max"}) {
    ExpectDerivativesOf(Cat(R"(
  x = f64[<=5,2] parameter(0)
  init = f64[] parameter(1)
  s = f64[2] reduce(x, init), dimensions={0}, to_apply=)",
                            computation, "\n  ROOT r = f64[2] sine(s)"),
                        x);
  }
  ExpectDerivativesOf(R"(
  x = f64[<=5,2] parameter(0)
  i = s32[4] constant({2, -7, 4, 1})
  g = f64[4,2] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,2}
  ROOT r = f64[4,2] multiply(g, g))",
                      x);
  for (std::string_view computation : {"add", "last", "max"}) {
    ExpectDerivativesOf(Cat(R"(
  x = f64[<=5,2] parameter(0)
  u = f64[4,2] parameter(1)
  i = s32[4] constant({2, -7, 4, 1})
  s = f64[<=5,2] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=)",
                            computation, "\n  ROOT r = f64[<=5,2] multiply(s, s)"),
                        x);
  }
  ExpectDerivativesOf(R"(
  x = f64[<=5,2] parameter(0)
  s = f64[<=5,2] sort(x), dimensions={0}, to_apply=less
  ROOT r = f64[<=5,2] multiply(s, s))",
                      x);
  ExpectDerivativesOf(R"(
  x = f64[<=5,2] parameter(0)
  scale = f64[2] parameter(1)
  offset = f64[2] parameter(2)
  n = (f64[<=5,2], f64[2], f64[2]) batch-norm-training(x, scale, offset), epsilon=0.1, feature_index=1
  y = f64[<=5,2] get-tuple-element(n), index=0
  ROOT s = f64[<=5,2] sine(y))",
                      x);
}

}  // namespace
}  // namespace kiln::grad

// Derivatives of scatters by computations that are differentiated as loops.
#include <gtest/gtest.h>

#include "unit/grad/check.h"

namespace kiln::grad {
namespace {

TEST(GradScatterLoop, Products) {
  // Updates that collide, some of them 0, one outside.
  for (std::vector<double> u :
       {std::vector<double>{2, 3, 5, 7, 11}, {2, 3, 0, 7, 11}, {0, 3, 0, 7, 0}}) {
    ExpectDerivativesOf(R"(
  x = f64[3] parameter(0)
  u = f64[5] parameter(1)
  i = s32[5] constant({2, 0, 2, 3, 2})
  ROOT s = f64[3] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=mul)",
                        {Doubles({3}, {1.5, 2.5, 3.5}), Doubles({5}, u)});
  }
}

TEST(GradScatterLoop, Windows) {
  ExpectDerivatives(R"(HloModule m
f {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  s = f64[] sine(a)
  ROOT r = f64[] multiply(s, b)
}
ENTRY e {
  x = f64[2,4,5] parameter(0)
  u = f64[3,2,2,2] parameter(1)
  i = u8[2,2,2] constant({{{0, 1}, {2, 0}}, {{2, 2}, {3, 1}}})
  ROOT s = f64[2,4,5] scatter(x, i, u), update_window_dims={0,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={2,1}, input_batching_dims={0}, scatter_indices_batching_dims={1}, index_vector_dim=2, to_apply=f
})");
}

TEST(GradScatterLoop, SeveralOperands) {
  ExpectDerivatives(R"(HloModule m
f {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  c = f64[] parameter(2)
  d = f64[] parameter(3)
  ac = f64[] multiply(a, c)
  bc = f64[] multiply(b, c)
  bcd = f64[] add(bc, d)
  ROOT r = (f64[], f64[]) tuple(ac, bcd)
}
ENTRY e {
  x = f64[3] parameter(0)
  y = f64[3] parameter(1)
  u = f64[4] parameter(2)
  v = f64[4] parameter(3)
  i = s32[4] constant({2, 0, 2, 3})
  ROOT s = (f64[3], f64[3]) scatter(x, y, i, u, v), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f
})");
}

}  // namespace
}  // namespace kiln::grad

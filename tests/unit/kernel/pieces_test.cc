// Kernels over arrays in pieces: their variables, and compiled code against the evaluator.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "ir/text.h"
#include "kernel/build.h"
#include "support/compiled.h"

namespace kiln {
namespace {

std::vector<int64_t> OuterExtents(std::string_view text) {
  auto module = ir::ParseOrDie(text);
  auto kernel = kernel::BuildKernel(kernel::GroupOf(*module->entry()->root()), "k");
  EXPECT_TRUE(kernel.ok()) << kernel.status().ToString();
  std::vector<int64_t> extents;
  for (kernel::VariableId v : kernel->OuterVariables()) {
    extents.push_back(kernel->variables[v].extent);
  }
  return extents;
}

// Heads side by side, each of which is a matrix of its own; `dim` columns of a head.
std::string Heads(int dim) {
  return Cat(R"(HloModule m
f {
  a = f32[2,3,5,)",
             dim, R"(] parameter(0)
  b = f32[2,3,5,)",
             dim, R"(] parameter(1)
  at = f32[2,5,3,)",
             dim, R"(] transpose(a), dimensions={0,2,1,3}
  bt = f32[2,5,3,)",
             dim, R"(] transpose(b), dimensions={0,2,1,3}
  ar = f32[10,)",
             3 * dim, R"(] reshape(at)
  br = f32[10,)",
             3 * dim, R"(] reshape(bt)
  z = f32[] constant(0)
  ap = f32[10,)",
             6 * dim, R"(] pad(ar, z), padding=0_0x0_)", 3 * dim, R"(
  bp = f32[10,)",
             6 * dim, R"(] pad(br, z), padding=0_0x)", 3 * dim, R"(_0
  ROOT s = f32[10,)",
             6 * dim, R"(] add(ap, bp)
}
ENTRY e {
  a = f32[2,3,5,)",
             dim, R"(] parameter(0)
  b = f32[2,3,5,)",
             dim, R"(] parameter(1)
  ROOT s = f32[10,)",
             6 * dim, R"(] fusion(a, b), kind=kLoop, calls=f
})");
}

TEST(Pieces, OfVectorsAreLoopsOfTheirOwn) {
  EXPECT_EQ(OuterExtents(Heads(16)), (std::vector<int64_t>{10, 6, 16}));
  EXPECT_EQ(OuterExtents(Heads(64)), (std::vector<int64_t>{10, 6, 64}));
  // Too short for vectors.
  EXPECT_EQ(OuterExtents(Heads(8)), (std::vector<int64_t>{10, 48}));
}

// Guards by pieces, and guards that cut pieces.
TEST(Pieces, Values) {
  for (int dim : {8, 16, 48}) testing::Check(Heads(dim), 0, 0);
  testing::Check(R"(HloModule m
ENTRY e {
  a = f32[4,6,16] parameter(0)
  z = f32[] constant(3)
  t = f32[6,4,16] transpose(a), dimensions={1,0,2}
  r = f32[6,64] reshape(t)
  p = f32[6,96] pad(r, z), padding=0_0x24_8
  i = s32[6,96] iota(), iota_dimension=1
  f = f32[6,96] convert(i)
  ROOT s = f32[6,96] add(p, f)
})",
                 0, 0);
}

}  // namespace
}  // namespace kiln

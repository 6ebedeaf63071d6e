// What modules do, against figures worked out by hand, and the bytes of the kernels that they
// become.
#include "ir/analysis/cost.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "program/memory.h"
#include "support/compiled.h"
#include "support/hlo.h"

namespace kiln {
namespace {

constexpr char kComputations[] = R"(
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
spread { a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] subtract(a, b)
  d = f32[] multiply(c, c)
  ROOT e = f32[] exponential(d) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
square { a = f32[] parameter(0)
  ROOT b = f32[] multiply(a, a) }
more { s = (s32[], f32[10]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT p = pred[] compare(i, n), direction=LT }
next { s = (s32[], f32[10]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[10] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[10] tanh(x)
  ROOT t = (s32[], f32[10]) tuple(j, y) }
few { x = f32[100] parameter(0)
  ROOT y = f32[100] negate(x) }
many { x = f32[100] parameter(0)
  y = f32[100] exponential(x)
  z = f32[100] add(y, x)
  ROOT w = f32[100] multiply(z, x) }
)";

std::string Module(std::string_view body) {
  return Cat("HloModule m\n", kComputations, "ENTRY e {\n", body, "\n}\n");
}

ir::Operations Of(std::string_view body) { return ir::OperationsOf(*ir::ParseOrDie(Module(body))); }

using Operations = ir::Operations;

TEST(Cost, Elementwise) {
  EXPECT_EQ(Of("x = f32[10,20] parameter(0)\n ROOT y = f32[10,20] add(x, x)"),
            (Operations{200, 0}));
  EXPECT_EQ(Of(R"(x = f32[7] parameter(0)
 y = f32[7] tanh(x)
 z = f32[7] sqrt(y)
 ROOT w = s32[7] convert(z))"),
            (Operations{7, 14}));
  EXPECT_EQ(Of(R"(p = pred[5] parameter(0)
 x = s8[5] parameter(1)
 y = s8[5] select(p, x, x)
 ROOT z = s8[5] clamp(x, y, x))"),
            (Operations{10, 0}));
}

TEST(Cost, OpsThatMoveElements) {
  EXPECT_EQ(Of(R"(x = f32[4,6] parameter(0)
 t = f32[6,4] transpose(x), dimensions={1,0}
 r = f32[24] reshape(t)
 s = f32[8] slice(r), slice={[0:24:3]}
 i = f32[8] iota(), iota_dimension=0
 c = f32[16] concatenate(s, i), dimensions={0}
 ROOT d = f32[16] copy(c))"),
            (Operations{0, 0}));
}

TEST(Cost, Dot) {
  EXPECT_EQ(Of("x = f32[3,5,7] parameter(0)\n y = f32[3,7,11] parameter(1)\n "
               "ROOT d = f32[3,5,11] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, "
               "lhs_contracting_dims={2}, rhs_contracting_dims={1}"),
            (Operations{2 * 3 * 5 * 7 * 11, 0}));
}

TEST(Cost, Computations) {
  EXPECT_EQ(Of(R"(x = f32[10,20] parameter(0)
 z = f32[] constant(0)
 ROOT r = f32[10] reduce(x, z), dimensions={1}, to_apply=add)"),
            (Operations{190, 0}));
  EXPECT_EQ(Of(R"(x = f32[10,20] parameter(0)
 z = f32[] constant(0)
 ROOT r = f32[] reduce(x, z), dimensions={0,1}, to_apply=spread)"),
            (Operations{2 * 199, 199}));
  EXPECT_EQ(Of(R"(x = f32[9] parameter(0)
 ROOT m = f32[9] map(x), dimensions={0}, to_apply=square)"),
            (Operations{9, 0}));
  EXPECT_EQ(Of("x = f32[50] parameter(0)\n i = s32[6] parameter(1)\n u = f32[6] parameter(2)\n "
               "ROOT s = f32[50] scatter(x, i, u), update_window_dims={}, "
               "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
               "to_apply=add"),
            (Operations{6, 0}));
}

TEST(Cost, Sorts) {
  EXPECT_EQ(Of(R"(x = f32[1024] parameter(0)
 ROOT s = f32[1024] sort(x), dimensions={0}, to_apply=less)"),
            (Operations{10240, 0}));
  EXPECT_EQ(Of(R"(x = f32[3,5] parameter(0)
 ROOT t = (f32[3,2], s32[3,2]) topk(x), k=2, largest=true)"),
            (Operations{15 * 4, 0}));
}

TEST(Cost, ControlFlow) {
  // One round of a loop: the comparison, the counter, and ten tanh.
  EXPECT_EQ(Of(R"(x = f32[10] parameter(0)
 i = s32[] parameter(1)
 t = (s32[], f32[10]) tuple(i, x)
 ROOT w = (s32[], f32[10]) while(t), condition=more, body=next)"),
            (Operations{2, 10}));
  EXPECT_EQ(Of(R"(p = pred[] parameter(0)
 x = f32[100] parameter(1)
 ROOT c = f32[100] conditional(p, x, x), branch_computations={few, many})"),
            (Operations{200, 100}));
  EXPECT_EQ(Of(R"(x = f32[100] parameter(0)
 a = f32[100] call(x), to_apply=few
 ROOT b = f32[100] call(a), to_apply=few)"),
            (Operations{200, 0}));
}

int64_t BytesOf(std::string_view body, bool fuse) {
  auto loaded = testing::Load(*ir::ParseOrDie(Module(body)), fuse);
  EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
  return loaded.ok() ? program::BytesAccessed(loaded->artefact->program) : -1;
}

TEST(Cost, BytesOfKernels) {
  constexpr char kChain[] =
      R"(x = f32[1000] parameter(0)
 y = f32[1000] tanh(x)
 z = f32[1000] add(y, x)
 ROOT w = f32[1000] exponential(z))";
  EXPECT_EQ(BytesOf(kChain, true), 4000 + 4000);
  // Op by op: tanh and exp read one and write one; add reads two.
  EXPECT_EQ(BytesOf(kChain, false), 8000 + 12000 + 8000);
  EXPECT_EQ(BytesOf(R"(x = f32[100,30] parameter(0)
 z = f32[] constant(0)
 ROOT r = f32[100] reduce(x, z), dimensions={1}, to_apply=add)",
                    true),
            12000 + 400);
  EXPECT_EQ(BytesOf(R"(x = f32[500] parameter(0)
 ROOT s = f32[500] sort(x), dimensions={0}, to_apply=less)",
                    true),
            2000 + 2000);
  // A parameter that is a result is copied.
  EXPECT_EQ(BytesOf(R"(x = f32[100] parameter(0)
 y = f32[100] negate(x)
 ROOT t = (f32[100], f32[100]) tuple(x, y))",
                    true),
            800 + 800);
}

}  // namespace
}  // namespace kiln

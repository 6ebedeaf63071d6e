// Arrays that are not in row-major order: what writes them, and what reads them.
#include <gtest/gtest.h>

#include <string_view>

#include "support/compiled.h"

namespace kiln {
namespace {

using testing::Check;

TEST(Layouts, ConstantsLieInTheirOrder) {
  Check(
      "HloModule m\nENTRY e {\n  x = s32[2,3] parameter(0)\n"
      "  c = s32[2,3]{0,1} constant({ { 1, 2, 3 }, { 4, 5, 6 } })\n"
      "  i = s32[2]{0} constant({ 1, 0 })\n"
      "  g = s32[2,3] gather(c, i), offset_dims={1}, collapsed_slice_dims={0}, "
      "start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}\n"
      "  ROOT r = s32[2,3] add(x, g)\n}\n",
      0, 0);
}

// The result is the operand's memory only where it has the operand's order.
TEST(Layouts, ScattersToAnother) {
  Check(
      "HloModule m\nnew {\n  a = bf16[] parameter(0)\n  ROOT b = bf16[] parameter(1)\n}\n"
      "ENTRY e {\n  x = bf16[4,6,5]{0,2,1} parameter(0)\n  i = s32[3,1] parameter(1)\n"
      "  y = bf16[3,6,5] parameter(2)\n"
      "  ROOT r = bf16[4,6,5] scatter(x, i, y), update_window_dims={1,2}, "
      "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
      "to_apply=new\n}\n",
      0, 0);
}

TEST(Layouts, SortsOfOneElement) {
  Check(
      R"(HloModule m
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT
}
ENTRY e {
  x = f32[2,4,1]{0,2,1} parameter(0)
  y = s32[2,4,1] parameter(1)
  s = (f32[2,4,1], s32[2,4,1]) sort(x, y), dimensions={2}, to_apply=less
  a = f32[2,4,1] get-tuple-element(s), index=0
  b = s32[2,4,1] get-tuple-element(s), index=1
  ROOT r = (f32[2,4,1], s32[2,4,1]) tuple(a, b)
}
)",
      0, 0);
}

// A rule whose result has another layout than what it would replace leaves nothing behind; else the
// pipeline would go on for ever.
TEST(Layouts, RewritesInVain) {
  Check(
      R"(HloModule m
ENTRY e {
  x = f32[1,5,2] parameter(0)
  a = f32[1,5,1] slice(x), slice={[0:1], [0:5], [0:1]}
  b = f32[1,5,1] slice(x), slice={[0:1], [0:5], [1:2]}
  ROOT r = f32[1,5,2]{0,1,2} concatenate(a, b), dimensions={2}
}
)",
      0, 0);
  // Also no computation of its own.
  Check(
      R"(HloModule m
plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY e {
  x = f32[6,1,4,2] parameter(0)
  z = f32[] constant(0)
  a = f32[6,4,2] reduce(x, z), dimensions={1}, to_apply=plus
  ROOT r = f32[6,2]{0,1} reduce(a, z), dimensions={1}, to_apply=plus
}
)");
}

}  // namespace
}  // namespace kiln

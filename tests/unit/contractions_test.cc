// Sums of products whose factors are somewhere in arrays.
#include <gtest/gtest.h>

#include "compiled_test_util.h"

namespace kiln {
namespace {

using testing::Check;

// Where a factor begins may be known at run time alone.
TEST(Contractions, OfDynamicSlices) {
  Check(
      "HloModule m\nENTRY e {\n  x = f32[3,1] parameter(0)\n  p = u8[] parameter(1)\n"
      "  y = f32[2,1,3] parameter(2)\n  c = u8[] constant(0)\n"
      "  s = f32[2,1] dynamic-slice(x, p, c), dynamic_slice_sizes={2,1}\n"
      "  ROOT d = f32[1,3] dot(s, y), lhs_batch_dims={1}, lhs_contracting_dims={0}, "
      "rhs_batch_dims={1}, rhs_contracting_dims={0}\n}\n");
}

}  // namespace
}  // namespace kiln

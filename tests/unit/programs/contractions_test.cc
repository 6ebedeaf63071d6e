// Sums of products whose factors are somewhere in arrays.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/strings.h"
#include "support/compiled.h"

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

// A factor that both operands walk as one is scaled by less than a vector of that.
TEST(Contractions, ScaledAlongOneOfTwoDimensions) {
  for (std::string_view sizes : {"2,2", "3,2", "7,5", "4,16", "16,4", "3,32"}) {
    for (bool inner : {true, false}) {
      const size_t comma = sizes.find(',');
      const std::string_view scale = inner ? sizes.substr(comma + 1) : sizes.substr(0, comma);
      const std::string x = Cat("f32[3,", sizes, "]");
      Check(Cat("HloModule m\nENTRY e {\n  x = ", x, " parameter(0)\n  s = f32[", scale,
                "] parameter(1)\n  y = f32[", sizes, "] parameter(2)\n  b = ", x,
                " broadcast(s), dimensions={", inner ? 2 : 1, "}\n  d = ", x,
                R"( multiply(x, b)
  ROOT r = f32[3] dot(d, y), lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}
}
)"));
    }
  }
}

}  // namespace
}  // namespace kiln

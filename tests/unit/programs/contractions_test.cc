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

// Few columns, which are the rows of tiles that are transposed before their epilogue.
TEST(Contractions, OfFewColumns) {
  for (std::string_view type : {"f32", "f64"}) {
    for (int64_t m : {784, 70, 33}) {
      for (int64_t n : {2, 3, 5, 7, 10, 12}) {
        for (bool batched : {false, true}) {
          auto shape = [&](int64_t rows, int64_t columns) {
            return Cat(type, "[", batched ? "3," : "", rows, ",", columns, "]");
          };
          const std::string result = shape(m, n);
          const int at = batched ? 1 : 0;
          const std::string text = Cat(
              "HloModule m\nENTRY e {\n  x = ", shape(20, m), " parameter(0)\n  d = ", shape(20, n),
              " parameter(1)\n  w = ", result, " parameter(2)\n  a = ", type, "[", m,
              "] parameter(3)\n  b = ", type, "[", n, "] parameter(4)\n  g = ", result,
              " dot(x, d), ", batched ? "lhs_batch_dims={0}, rhs_batch_dims={0}, " : "",
              "lhs_contracting_dims={", at, "}, rhs_contracting_dims={", at, "}\n");
          Check(Cat(text, "  ROOT r = ", result, " copy(g)\n}\n"));
          Check(Cat(text, "  rows = ", result, " broadcast(a), dimensions={", at,
                    "}\n  columns = ", result, " broadcast(b), dimensions={", at + 1,
                    "}\n  i = ", result, " multiply(g, rows)\n  j = ", result,
                    " add(i, columns)\n  ROOT r = ", result, " subtract(w, j)\n}\n"));
        }
      }
    }
  }
}

// Both factors are read from one array, which the left one is packed from: across, or of a narrower
// type. Epilogues read it where it is.
TEST(Contractions, OfOneArray) {
  for (std::string_view type : {"f32", "f64", "bf16", "s32"}) {
    // Of bf16 two units in the last place of a product, which another number may be taken from.
    const double tolerance = type == "bf16" ? 5e-2 : 1e-4;
    for (std::string_view epilogue : {"copy(d)", "add(d, q)"}) {
      for (int64_t n : {190, 256}) {
        const std::string x = Cat(type, "[300,", n, "]"), square = Cat(type, "[", n, ",", n, "]");
        const std::string begin =
            Cat("HloModule m\nENTRY e {\n  x = ", x, " parameter(0)\n  q = ", square,
                " slice(x), slice={[0:", n, "], [0:", n, "]}\n  d = ", square);
        Check(Cat(begin,
                  " dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n  ROOT r = ",
                  square, " ", epilogue, "\n}\n"),
              tolerance, tolerance);
        Check(Cat(begin,
                  " dot(q, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  ROOT r = ",
                  square, " ", epilogue, "\n}\n"),
              tolerance, tolerance);
      }
    }
  }
}

}  // namespace
}  // namespace kiln

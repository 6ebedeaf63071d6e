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

// What is put side by side two by two, three by three or four by four is interleaved vectors.
TEST(Pieces, SideBySide) {
  constexpr std::string_view kRepeat = R"(HloModule m
f {
  x = f32[50,40] parameter(0)
  b = f32[50,40,4] broadcast(x), dimensions={0,1}
  ROOT r = f32[50,160] reshape(b)
}
ENTRY e {
  x = f32[50,40] parameter(0)
  ROOT r = f32[50,160] fusion(x), kind=kLoop, calls=f
})";
  EXPECT_EQ(OuterExtents(kRepeat), (std::vector<int64_t>{50, 40, 4}));
  testing::Check(std::string(kRepeat), 0, 0);
  for (std::string_view type : {"f32", "bf16", "s8", "s64"}) {
    for (int rows : {3, 333}) {
      for (int columns : {2, 3, 4, 5}) {
        SCOPED_TRACE(Cat(type, " ", rows, " x ", columns));
        const std::string array = Cat(type, "[", rows, ",", columns, "]");
        const std::string column = Cat(type, "[", rows, ",1]");
        std::string parts;
        for (int i = 0; i < columns; ++i) {
          parts += Cat("  p", i, " = ", column, " slice(x), slice={[0:", rows, "],[", i, ":", i + 1,
                       "]}\n");
        }
        std::string reversed;
        for (int i = columns; i-- > 0;) reversed += Cat(i + 1 < columns ? ", p" : "p", i);
        testing::Check(
            Cat("HloModule m\nENTRY e {\n  x = ", array, " parameter(0)\n  v = ", type, "[",
                columns, "] parameter(1)\n  b = ", array, " broadcast(v), dimensions={1}\n", parts,
                "  c = ", array, " concatenate(", reversed, "), dimensions={1}\n  ROOT s = ", array,
                " add(c, b)\n}"),
            0, 0);
      }
    }
  }
}

TEST(Pieces, EveryFew) {
  for (std::string_view type : {"f32", "f64", "f16", "u8"}) {
    for (int stride : {2, 3, 4, 5}) {
      SCOPED_TRACE(Cat(type, " ", stride));
      const int64_t kept = (200 - 1) / stride + 1;
      testing::Check(Cat("HloModule m\nENTRY e {\n  x = ", type, "[7,201] parameter(0)\n  s = ",
                         type, "[7,", kept, "] slice(x), slice={[0:7],[1:201:", stride,
                         "]}\n  ROOT n = ", type, "[7,", kept, "] add(s, s)\n}"),
                     0, 0);
    }
  }
}

// Loops of their own for the pieces along vectors, of which items have parts.
TEST(Pieces, AlongVectors) {
  for (int shift : {1, 17, 2999}) {
    SCOPED_TRACE(shift);
    testing::Check(Cat(R"(HloModule m
ENTRY e {
  x = f32[3000] parameter(0)
  a = f32[)",
                       shift, "] slice(x), slice={[", 3000 - shift, R"(:3000]}
  b = f32[)",
                       3000 - shift, "] slice(x), slice={[0:", 3000 - shift, R"(]}
  c = f32[3000] concatenate(a, b), dimensions={0}
  ROOT s = f32[3000] add(c, x)
})"),
                   0, 0);
  }
  testing::Check(R"(HloModule m
ENTRY e {
  x = f32[40,300] parameter(0)
  first = f32[40,1] slice(x), slice={[0:40],[0:1]}
  f = f32[40,1,3] broadcast(first), dimensions={0,1}
  fr = f32[40,3] reshape(f)
  last = f32[40,1] slice(x), slice={[0:40],[299:300]}
  l = f32[40,1,5] broadcast(last), dimensions={0,1}
  lr = f32[40,5] reshape(l)
  wide = f32[40,308] concatenate(fr, x, lr), dimensions={1}
  z = f32[] constant(2)
  ROOT p = f32[45,340] pad(wide, z), padding=3_2x20_12
})",
                 0, 0);
  // Large enough for items that are parts of a row.
  testing::Check(R"(HloModule m
ENTRY e {
  x = f32[3,100000] parameter(0)
  a = f32[3,70000] slice(x), slice={[0:3],[30000:100000]}
  b = f32[3,30000] slice(x), slice={[0:3],[0:30000]}
  ROOT c = f32[3,100000] concatenate(a, b), dimensions={1}
})",
                 0, 0);
}

// NaNs, infinities and both zeros, of rows and of columns.
TEST(Pieces, Extrema) {
  for (std::string_view dims : {"0", "1"}) {
    for (std::string_view op : {"maximum", "minimum"}) {
      for (std::string_view of : {"special", "zeros"}) {
        SCOPED_TRACE(Cat(op, " over ", dims, " of ", of));
        const std::string_view init = op == "maximum" ? "-inf" : "inf";
        testing::Check(Cat(R"(HloModule m
r { a = f32[] parameter(0) b = f32[] parameter(1) ROOT m = f32[] )",
                           op, R"((a, b) }
ENTRY e {
  x = f32[1000,1000] parameter(0)
  nan = f32[] constant(nan)
  nans = f32[1000,1000] broadcast(nan), dimensions={}
  limit = f32[] constant(2)
  limits = f32[1000,1000] broadcast(limit), dimensions={}
  large = pred[1000,1000] compare(x, limits), direction=GT
  special = f32[1000,1000] select(large, nans, x)
  zero = f32[] constant(0)
  zerob = f32[1000,1000] broadcast(zero), dimensions={}
  zeros = f32[1000,1000] multiply(x, zerob)
  init = f32[] constant()",
                           init, R"()
  m = f32[1000] reduce()",
                           of, ", init), dimensions={", dims, R"(}, to_apply=r
  one = f32[] constant(1)
  ones = f32[1000] broadcast(one), dimensions={}
  sign = f32[1000] divide(ones, m)
  ROOT t = (f32[1000], f32[1000]) tuple(m, sign)
})"),
                       0, 0);
      }
    }
  }
}

}  // namespace
}  // namespace kiln

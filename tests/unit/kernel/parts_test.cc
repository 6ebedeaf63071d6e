// Results put together of equal parts, which a kernel makes together where they read the same
// elements: its variables and stores, and compiled code against the evaluator.
#include "kernel/parts.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "ir/text.h"
#include "kernel/build.h"
#include "support/compiled.h"
#include "support/hlo.h"

namespace kiln {
namespace {

struct Made {
  int64_t points = 0;
  size_t stores = 0;
};

Made MadeOf(std::string_view text) {
  auto module = ir::ParseOrDie(text);
  auto kernel = kernel::BuildKernel(kernel::GroupOf(*module->entry()->root()), "k");
  EXPECT_TRUE(kernel.ok()) << kernel.status().ToString();
  return {kernel->OuterPoints(), kernel->stages.front().stores.size()};
}

// Halves behind each other that read the same elements, as in rotary embeddings, and an op on both.
constexpr std::string_view kRotated = R"(HloModule m
f {
  x = f32[6,10] parameter(0)
  c = f32[6,5] parameter(1)
  low = f32[6,5] slice(x), slice={[0:6], [0:5]}
  high = f32[6,5] slice(x), slice={[0:6], [5:10]}
  a = f32[6,5] multiply(low, c)
  b = f32[6,5] multiply(high, c)
  d = f32[6,5] subtract(a, high)
  e = f32[6,5] add(b, low)
  y = f32[6,10] concatenate(d, e), dimensions={1}
  ROOT r = f32[6,10] negate(y)
}
ENTRY e {
  x = f32[6,10] parameter(0)
  c = f32[6,5] parameter(1)
  ROOT r = f32[6,10] fusion(x, c), kind=kLoop, calls=f
})";

// Rows and columns interleaved, in another shape.
constexpr std::string_view kInterleaved = R"(HloModule m
f {
  a = f32[3,4,8] parameter(0)
  b = f32[3,4,8] parameter(1)
  s = f32[3,4,8] add(a, b)
  d = f32[3,4,8] subtract(a, b)
  m = f32[3,4,8] multiply(a, b)
  n = f32[3,4,8] maximum(a, b)
  s1 = f32[3,1,4,1,8] reshape(s)
  d1 = f32[3,1,4,1,8] reshape(d)
  m1 = f32[3,1,4,1,8] reshape(m)
  n1 = f32[3,1,4,1,8] reshape(n)
  upper = f32[3,1,4,2,8] concatenate(s1, d1), dimensions={3}
  lower = f32[3,1,4,2,8] concatenate(m1, n1), dimensions={3}
  y = f32[3,2,4,2,8] concatenate(upper, lower), dimensions={1}
  z = f32[6,8,8] reshape(y)
  o = f32[8] parameter(2)
  p = f32[6,8,8] broadcast(o), dimensions={2}
  ROOT r = f32[6,8,8] add(z, p)
}
ENTRY e {
  a = f32[3,4,8] parameter(0)
  b = f32[3,4,8] parameter(1)
  o = f32[8] parameter(2)
  ROOT r = f32[6,8,8] fusion(a, b, o), kind=kLoop, calls=f
})";

// Parts that read nothing together, and parts of different sizes.
constexpr std::string_view kApart = R"(HloModule m
f {
  a = f32[6,5] parameter(0)
  b = f32[6,5] parameter(1)
  n = f32[6,5] negate(a)
  ROOT y = f32[6,10] concatenate(n, b), dimensions={1}
}
ENTRY e {
  a = f32[6,5] parameter(0)
  b = f32[6,5] parameter(1)
  ROOT r = f32[6,10] fusion(a, b), kind=kLoop, calls=f
})";

constexpr std::string_view kUnequal = R"(HloModule m
f {
  a = f32[6,5] parameter(0)
  s = f32[6,2] slice(a), slice={[0:6], [1:3]}
  ROOT y = f32[6,7] concatenate(a, s), dimensions={1}
}
ENTRY e {
  a = f32[6,5] parameter(0)
  ROOT r = f32[6,7] fusion(a), kind=kLoop, calls=f
})";

TEST(Parts, AreMadeTogetherWhereTheyReadTheSame) {
  Made made = MadeOf(kRotated);
  EXPECT_EQ(made.points, 30);
  EXPECT_EQ(made.stores, 2);
  made = MadeOf(kInterleaved);
  EXPECT_EQ(made.points, 96);
  EXPECT_EQ(made.stores, 4);
  EXPECT_EQ(MadeOf(kApart).stores, 1);
  EXPECT_EQ(MadeOf(kUnequal).stores, 1);
}

TEST(Parts, AreRight) {
  for (std::string_view text : {kRotated, kInterleaved, kApart, kUnequal}) {
    testing::Check(std::string(text));
  }
}

TEST(Parts, AreFoundByTheirPlaces) {
  auto module = ir::ParseOrDie(kInterleaved);
  const ir::Instruction& root = *module->entry()->root()->called(0)->root();
  const std::vector<kernel::PartsDimension> parts = kernel::PartsOf(
      root, [](const ir::Instruction& i) { return i.opcode() == Opcode::kParameter; });
  ASSERT_EQ(parts.size(), 2);
  EXPECT_EQ(parts[0].dimension, 0);
  EXPECT_EQ(parts[0].count, 2);
  EXPECT_EQ(parts[0].inner, 1);
  EXPECT_EQ(parts[1].dimension, 1);
  EXPECT_EQ(parts[1].inner, 1);
}

}  // namespace
}  // namespace kiln

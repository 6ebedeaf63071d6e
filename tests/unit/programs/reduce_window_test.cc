// Reductions over windows, and scans: shapes, text, the evaluator, and compiled code against it.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "ir/text.h"
#include "kernel/build.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/interp.h"
#include "support/labels.h"
#include "support/literal.h"

namespace kiln {
namespace {

using testing::Check;
using testing::ValueOf;

constexpr char kReducers[] = R"(
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
mul { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] multiply(a, b) }
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b) }
min { a = s8[] parameter(0)
  b = s8[] parameter(1)
  ROOT c = s8[] minimum(a, b) }
iadd { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b) }
hadd { a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT c = bf16[] add(a, b) }
dmax { a = f64[] parameter(0)
  b = f64[] parameter(1)
  ROOT c = f64[] maximum(a, b) }
first { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] subtract(a, b) }
larger { v = f32[] parameter(0)
  i = s32[] parameter(1)
  w = f32[] parameter(2)
  j = s32[] parameter(3)
  p = pred[] compare(v, w), direction=GE
  x = f32[] select(p, v, w)
  y = s32[] select(p, i, j)
  ROOT t = (f32[], s32[]) tuple(x, y) }
)";

// Of s32 operand x and init value z.
std::string Windowed(std::string_view operand, std::string_view window,
                     std::string_view reducer = "iadd", std::string_view init = "0") {
  return ValueOf(Cat("HloModule m\n", kReducers, "ENTRY e {\n  x = ", operand,
                     "\n  z = s32[] constant(", init, ")\n  ROOT r = reduce-window(x, z), window={",
                     window, "}, to_apply=", reducer, "\n}\n"));
}

TEST(ReduceWindow, Evaluates) {
  constexpr char kFive[] = "s32[5] constant({1, 2, 3, 4, 5})";
  EXPECT_EQ(Windowed(kFive, "size=2"), "{3, 5, 7, 9}");
  EXPECT_EQ(Windowed(kFive, "size=2 stride=2"), "{3, 7}");
  EXPECT_EQ(Windowed(kFive, "size=3 pad=1_1"), "{3, 6, 9, 12, 9}");
  EXPECT_EQ(Windowed(kFive, "size=2 pad=-1_-1"), "{5, 7}");
  EXPECT_EQ(Windowed(kFive, "size=2 lhs_dilate=2"), "{1, 2, 2, 3, 3, 4, 4, 5}");
  EXPECT_EQ(Windowed(kFive, "size=3 rhs_dilate=2"), "{9}");
  EXPECT_EQ(Windowed(kFive, "size=5 pad=4_0"), "{1, 3, 6, 10, 15}");
  EXPECT_EQ(Windowed(kFive, "size=5 pad=0_4"), "{15, 14, 12, 9, 5}");
  EXPECT_EQ(Windowed(kFive, "size=6"), "{}");
  EXPECT_EQ(Windowed("s32[0] constant({})", "size=1 pad=1_1"), "{0, 0}");
  // In order, from the init value, which is taken once; padding and holes are left out.
  EXPECT_EQ(Windowed(kFive, "size=3 pad=2_0", "first", "100"), "{99, 97, 94, 91, 88}");
  EXPECT_EQ(Windowed(kFive, "size=2 stride=3 pad=1_2 lhs_dilate=3", "iadd", "7"),
            "{8, 9, 10, 11, 12}");
  EXPECT_EQ(Windowed("s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})", "size=2x2 pad=0_1x1_0"),
            "{ { 5, 12, 16 }, { 4, 9, 11 } }");
  EXPECT_EQ(Windowed("s32[] constant(3)", "", "iadd", "4"), "7");
  EXPECT_EQ(Windowed("s32[3,2] constant({{1, 2}, {3, 4}, {5, 6}})",
                     "size=2x1 stride=4x1 pad=2_1x0_0 lhs_dilate=2x1 rhs_dilate=3x1"),
            "{ { 0, 0 }, { 3, 4 } }");
}

TEST(ReduceWindow, EvaluatesSeveral) {
  EXPECT_EQ(ValueOf(Cat("HloModule m\n", kReducers, R"(
ENTRY e { x = f32[5] constant({1, 7, 3, 7, 2})
  i = s32[5] iota(), iota_dimension=0
  low = f32[] constant(-inf)
  none = s32[] constant(-1)
  ROOT r = (f32[3], s32[3]) reduce-window(x, i, low, none), window={size=3}, to_apply=larger })")),
            "({7, 7, 7}, {1, 1, 3})");
}

std::string ErrorOf(std::string_view parameters, std::string_view window) {
  auto module = ir::ParseHloText(Cat("HloModule m\n", kReducers, "ENTRY e {\n  x = ", parameters,
                                     R"( parameter(0)
  z = f32[] parameter(1)
  ROOT r = reduce-window(x, z), window={)",
                                     window, "}, to_apply=add\n}\n"));
  if (!module.ok()) return std::string(module.status().message());
  return (*module)->entry()->root()->shape().ToString();
}

TEST(ReduceWindow, Shapes) {
  EXPECT_EQ(ErrorOf("f32[2,N]", "size=2x1"), "f32[1,N]");
  EXPECT_EQ(ErrorOf("f32[0]", "size=2 pad=3_0"), "f32[2]");
  EXPECT_EQ(ErrorOf("f32[4]", "size=2 pad=-5_-5"), "f32[0]");
  auto contains = [](std::string_view text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string_view::npos) << text;
  };
  EXPECT_EQ(ErrorOf("f32[2,N]", "size=1x2"), "f32[2,N-1]");
  contains(ErrorOf("f32[2]", "size=1x2"), "the window has 2 dimensions; expected 1");
  contains(ErrorOf("f32[2]", "size=0"), "must be at least 1");
  contains(ErrorOf("f32[2]", "size=1 stride=0"), "must be at least 1");
  contains(ErrorOf("f32[2]", "size=1 rhs_reversal=1"), "for convolutions");
  contains(ErrorOf("f32[2]", "size=9223372036854775807 rhs_dilate=3"), "fit");
  contains(ErrorOf("f32[2]", "stride=1"), "expected size");
  contains(ErrorOf("f32[2]", "size=1 stride=1x1"), "expected 1 dimensions");
  contains(ErrorOf("s32[2]", "size=1"), "init value 0 must be s32[]");
}

TEST(ReduceWindow, Text) {
  for (std::string_view window :
       {"size=2x3", "size=1x3 stride=2x1", "size=2x3 pad=-1_0x2_1",
        "size=2x1 stride=2x2 pad=1_1x0_0 lhs_dilate=2x1 rhs_dilate=1x3"}) {
    auto module = ir::ParseHloText(Cat(
        "HloModule m\n", kReducers, "ENTRY e {\n  x = f32[9,9] parameter(0)\n  z = f32[] ",
        "parameter(1)\n  ROOT r = reduce-window(x, z), window={", window, "}, to_apply=add\n}\n"));
    ASSERT_TRUE(module.ok()) << module.status().ToString();
    std::string text = ir::ToHloText(**module);
    EXPECT_NE(text.find(Cat("window={", window, "}, to_apply")), std::string::npos) << text;
  }
}

// Values near 1, so that products stay small.
TEST(ReduceWindow, Pools) {
  Check(Cat("HloModule m\n", kReducers, R"(
ENTRY e { x = f32[2,13,17,9] parameter(0)
  y = s8[31,40] parameter(1)
  h = bf16[40,33] parameter(2)
  d = f64[70] parameter(3)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  most = s8[] constant(127)
  hzero = bf16[] constant(0)
  dlow = f64[] constant(-inf)
  a = f32[2,7,9,9] reduce-window(x, low), window={size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x1_1x0_0}, to_apply=max
  b = f32[2,13,17,7] reduce-window(x, zero), window={size=1x1x1x3}, to_apply=add
  c = s8[30,20] reduce-window(y, most), window={size=2x2 stride=1x2}, to_apply=min
  f = bf16[40,35] reduce-window(h, hzero), window={size=5x3 pad=2_2x2_2}, to_apply=hadd
  g = f64[68] reduce-window(d, dlow), window={size=2 rhs_dilate=2}, to_apply=dmax
  q = f64[140] reduce-window(d, dlow), window={size=3 pad=1_2 lhs_dilate=2}, to_apply=dmax
  n = f32[2,7,9,9] negate(a)
  ROOT o = (f32[2,7,9,9], f32[2,13,17,7], s8[30,20], bf16[40,35], f64[68], f64[140]) tuple(n, b, c, f, g, q) })"),
        1e-2, 1e-2);
}

TEST(ReduceWindow, OddWindows) {
  Check(Cat("HloModule m\n", kReducers, R"(
ENTRY e { x = s32[7,19] parameter(0)
  e = s32[0,19] parameter(1)
  i = s32[] parameter(2)
  a = s32[3,10] reduce-window(x, i), window={size=4x3 stride=2x2 pad=2_-1x1_1 rhs_dilate=1x1}, to_apply=iadd
  b = s32[13,37] reduce-window(x, i), window={size=1x1 lhs_dilate=2x2}, to_apply=iadd
  c = s32[2,19] reduce-window(e, i), window={size=2x1 pad=1_2x0_0}, to_apply=iadd
  d = s32[0,19] reduce-window(x, i), window={size=9x1}, to_apply=iadd
  f = s32[1,1] reduce-window(x, i), window={size=7x19}, to_apply=first
  g = s32[5,3] reduce-window(x, i), window={size=2x3 stride=3x5 pad=5_5x0_0 lhs_dilate=1x1 rhs_dilate=2x2}, to_apply=first
  ROOT o = (s32[3,10], s32[13,37], s32[2,19], s32[0,19], s32[1,1], s32[5,3]) tuple(a, b, c, d, f, g) })"));
}

TEST(ReduceWindow, ProducersAndConsumers) {
  Check(Cat("HloModule m\n", kReducers, R"(
ENTRY e { x = f32[40,50] parameter(0)
  y = f32[50,40] parameter(1)
  zero = f32[] constant(0)
  t = f32[40,50] tanh(x)
  s = f32[40,50] multiply(x, x)
  u = f32[40,50] transpose(y), dimensions={1,0}
  v = f32[40,50] add(s, u)
  a = f32[38,48] reduce-window(t, zero), window={size=3x3}, to_apply=add
  b = f32[20,25] reduce-window(v, zero), window={size=2x2 stride=2x2}, to_apply=add
  k = f32[] constant(0.25)
  ks = f32[20,25] broadcast(k), dimensions={}
  c = f32[20,25] multiply(b, ks)
  l = f32[500] reshape(c)
  w = f32[500] exponential(l)
  ROOT o = (f32[38,48], f32[500]) tuple(a, w) })"));
}

std::string Scans(std::string_view shape, int64_t n, std::string_view before,
                  std::string_view after, std::string_view type = "f32",
                  std::string_view reducer = "add") {
  return Cat("HloModule m\n", kReducers, "ENTRY e {\n  x = ", shape, " parameter(0)\n  z = ", type,
             "[] constant(0)\n  a = ", shape, " reduce-window(x, z), window={size=", before, n,
             after, "}, to_apply=", reducer, "\n  ROOT r = ", shape, " negate(a)\n}\n");
}

TEST(Scan, AlongEveryDimension) {
  Check(Scans("f32[33,7,50]", 33, "", "x1x1 pad=32_0x0_0x0_0"));
  Check(Scans("f32[33,7,50]", 7, "1x", "x1 pad=0_0x0_6x0_0"));
  Check(Scans("f32[33,7,50]", 50, "1x1x", " pad=0_0x0_0x49_0"));
  Check(Scans("f32[5,203]", 203, "1x", " pad=0_0x0_202"));
  Check(Scans("f32[1000]", 1000, "", " pad=999_0"));
  Check(Scans("s32[9,77]", 77, "1x", " pad=0_0x76_0", "s32", "iadd"));
  Check(Scans("s32[77,3]", 77, "", "x1 pad=0_76x0_0", "s32", "iadd"));
  Check(Scans("bf16[60,40]", 60, "", "x1 pad=59_0x0_0", "bf16", "hadd"), 1e-1, 1e-1);
  Check(Scans("bf16[6,400]", 400, "1x", " pad=0_0x399_0", "bf16", "hadd"), 1e-1, 1e-1);
}

TEST(Scan, OtherForms) {
  Check(Cat("HloModule m\n", kReducers, R"(
ENTRY e { x = f32[6,40] parameter(0)
  y = s8[90,17] parameter(1)
  d = f64[64] parameter(2)
  p = s32[30,12] parameter(3)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  most = s8[] constant(127)
  dlow = f64[] constant(-inf)
  none = s32[] constant(-1)
  index = s32[6,40] iota(), iota_dimension=1
  a = f32[6,40] reduce-window(x, zero), window={size=1x40 pad=0_0x40_-1}, to_apply=add
  b = f32[6,30] reduce-window(x, zero), window={size=1x50 pad=0_0x50_-11}, to_apply=add
  c = s8[90,17] reduce-window(y, most), window={size=90x1 pad=0_89x0_0}, to_apply=min
  f = f64[64] reduce-window(d, dlow), window={size=64 pad=63_0}, to_apply=dmax
  g = (f32[6,40], s32[6,40]) reduce-window(x, index, low, none), window={size=1x40 pad=0_0x39_0}, to_apply=larger
  h = (f32[6,40], s32[6,40]) reduce-window(x, index, low, none), window={size=1x40 pad=0_0x0_39}, to_apply=larger
  i = s32[30,12] reduce-window(p, none), window={size=30x1 pad=29_0x0_0}, to_apply=first
  j = s32[30,12] reduce-window(p, none), window={size=1x12 pad=0_0x11_0}, to_apply=first
  ROOT o = (f32[6,40], f32[6,30], s8[90,17], f64[64], (f32[6,40], s32[6,40]), (f32[6,40], s32[6,40]), s32[30,12], s32[30,12]) tuple(a, b, c, f, g, h, i, j) })"));
}

TEST(Scan, ProducersAndConsumers) {
  Check(Cat("HloModule m\n", kReducers, R"(
ENTRY e { x = f32[20,30] parameter(0)
  y = f32[30,20] parameter(1)
  zero = f32[] constant(0)
  t = f32[20,30] tanh(x)
  u = f32[20,30] transpose(y), dimensions={1,0}
  v = f32[20,30] multiply(t, u)
  s = f32[20,30] reduce-window(v, zero), window={size=20x1 pad=19_0x0_0}, to_apply=add
  w = f32[20,30] add(s, u)
  r = f32[600] reshape(w)
  ROOT o = f32[600] negate(r) })"));
}

// Windows over two dimensions one after the other, and long ones by blocks: the same elements.
TEST(ReduceWindow, LongWindowsOfExtrema) {
  Check(Cat("HloModule m\n", kReducers, R"(
ENTRY e { x = f32[3,500] parameter(0)
  y = s8[60,70] parameter(1)
  d = f64[400] parameter(2)
  low = f32[] constant(-inf)
  half = f32[] constant(0.5)
  most = s8[] constant(127)
  dlow = f64[] constant(-inf)
  a = f32[3,437] reduce-window(x, low), window={size=1x64}, to_apply=max
  b = f32[3,500] reduce-window(x, half), window={size=1x101 pad=0_0x50_50}, to_apply=max
  c = s8[56,62] reduce-window(y, most), window={size=15x29 pad=3_7x20_0}, to_apply=min
  f = f64[300] reduce-window(d, dlow), window={size=165 pad=64_0}, to_apply=dmax
  ROOT o = (f32[3,437], f32[3,500], s8[56,62], f64[300]) tuple(a, b, c, f) })"));
}

// The kernel of a module's root.
kernel::Kernel KernelOf(std::string_view text) {
  auto module = ir::ParseOrDie(text);
  auto built = kernel::BuildKernel(kernel::GroupOf(*module->entry()->root()), "k");
  EXPECT_TRUE(built.ok()) << built.status().ToString();
  return *built;
}

TEST(Scan, IsOneStepForEachElement) {
  auto kind = [](std::string_view window) {
    return KernelOf(Cat("HloModule m\n", kReducers,
                        R"(ENTRY e {
  x = f32[20,30] parameter(0)
  z = f32[] constant(0)
  ROOT r = reduce-window(x, z), window={)",
                        window, "}, to_apply=add\n}\n"));
  };
  using Kind = kernel::Kernel::Kind;
  EXPECT_EQ(kind("size=20x1 pad=19_0x0_0").kind, Kind::kScan);
  EXPECT_EQ(kind("size=20x1 pad=0_19x0_0").kind, Kind::kScan);
  EXPECT_EQ(kind("size=1x30 pad=0_0x30_-1").kind, Kind::kScan);
  EXPECT_EQ(kind("size=1x100 pad=0_0x99_0").kind, Kind::kScan);
  // The first window has two elements; a window that forgets; two dimensions; every other one.
  EXPECT_EQ(kind("size=20x1 pad=18_1x0_0").kind, Kind::kNest);
  EXPECT_EQ(kind("size=19x1 pad=18_0x0_0").kind, Kind::kNest);
  EXPECT_EQ(kind("size=20x2 pad=19_0x0_0").kind, Kind::kNest);
  EXPECT_EQ(kind("size=20x1 stride=2x1 pad=19_0x0_0").kind, Kind::kNest);
  EXPECT_LT(kind("size=20x1 pad=19_0x0_0").flops, 2000);
}

// However many threads there are.
TEST(Scan, GivesTheSameBitsForAnyNumberOfThreads) {
  for (std::string_view text :
       {"f32[600,2000] reduce-window(x, z), window={size=600x1 pad=599_0x0_0}",
        "f32[600,2000] reduce-window(x, z), window={size=1x2000 pad=0_0x0_1999}"}) {
    auto module = ir::ParseOrDie(Cat("HloModule m\n", kReducers,
                                     R"(ENTRY e {
  x = f32[600,2000] parameter(0)
  z = f32[] constant(0)
  ROOT r = )",
                                     text, ", to_apply=add\n}\n"));
    auto loaded = testing::Load(*module, true);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    if (!testing::IsTestOfGpu()) EXPECT_GT(testing::TasksOf(loaded->lowered->kernels.at(0)), 1);
    testing::Execution one(*loaded->artefact), two(*loaded->artefact);
    std::vector<Literal> arguments = testing::RandomArguments(*module, 1);
    one.SetArguments(arguments);
    two.SetArguments(arguments);
    ASSERT_TRUE(loaded->executable->Run(one.arguments(), one.results(), {.threads = 1}).ok());
    ASSERT_TRUE(loaded->executable->Run(two.arguments(), two.results()).ok());
    EXPECT_TRUE(one.SameBits(two));
  }
}

KILN_LABEL(gpu_sample, "ReduceWindow", "Scan");
KILN_LABEL(text, "ReduceWindow.Text");

}  // namespace
}  // namespace kiln

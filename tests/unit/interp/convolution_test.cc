// The evaluator's convolutions, what windows see, and select-and-scatter, by numbers worked out by
// hand.
#include <gtest/gtest.h>

#include "support/interp.h"

namespace kiln {
namespace {

// Without spaces.
std::string ValueOf(const std::string& module) {
  std::string value = testing::ValueOf(module);
  std::erase(value, ' ');
  return value;
}

// A convolution of s32 constants.
std::string Convolve(std::string_view result, std::string_view lhs, std::string_view x,
                     std::string_view rhs, std::string_view w, std::string_view attributes) {
  return ValueOf(Cat("HloModule m\nENTRY e {\n  x = ", lhs, " constant(", x, ")\n  w = ", rhs,
                     " constant(", w, ")\n  ROOT r = ", result, " convolution(x, w), ", attributes,
                     "\n}\n"));
}

TEST(InterpConvolution, OneDimension) {
  auto convolve = [](std::string_view size, std::string_view window) {
    return Convolve(Cat("s32[1,", size, ",1]"), "s32[1,5,1]", "{{{1}, {2}, {3}, {4}, {5}}}",
                    "s32[3,1,1]", "{{{1}}, {{10}}, {{100}}}",
                    Cat("window={size=3", window, "}, dim_labels=b0f_0io->b0f"));
  };
  EXPECT_EQ(convolve("3", ""), "{{{321},{432},{543}}}");
  EXPECT_EQ(convolve("2", " stride=2"), "{{{321},{543}}}");
  EXPECT_EQ(convolve("5", " pad=1_1"), "{{{210},{321},{432},{543},{54}}}");
  EXPECT_EQ(convolve("2", " pad=-1_0"), "{{{432},{543}}}");
  EXPECT_EQ(convolve("2", " pad=1_-2"), "{{{210},{321}}}");
  EXPECT_EQ(convolve("1", " rhs_dilate=2"), "{{{531}}}");
  EXPECT_EQ(convolve("3", " rhs_reversal=1"), "{{{123},{234},{345}}}");
  EXPECT_EQ(convolve("7", " lhs_dilate=2"), "{{{201},{20},{302},{30},{403},{40},{504}}}");
  EXPECT_EQ(convolve("4", " stride=3 pad=2_1 lhs_dilate=2"), "{{{100},{20},{403},{50}}}");
  EXPECT_EQ(convolve("0", " pad=-2_-1"), "{{}}");
}

TEST(InterpConvolution, Features) {
  // Two features to three, of a batch of two, without a window.
  EXPECT_EQ(Convolve("s32[2,3]", "s32[2,2]", "{{1, 2}, {3, 4}}", "s32[2,3]",
                     "{{1, 10, 100}, {1000, 10000, 100000}}", "window={}, dim_labels=bf_io->bf"),
            "{{2001,20010,200100},{4003,40030,400300}}");
  EXPECT_EQ(Convolve("s32[3,2]", "s32[2,2]", "{{1, 3}, {2, 4}}", "s32[3,2]",
                     "{{1, 1000}, {10, 10000}, {100, 100000}}", "window={}, dim_labels=fb_oi->fb"),
            "{{2001,4003},{20010,40030},{200100,400300}}");
  // Two groups of two features each, to two each.
  EXPECT_EQ(Convolve("s32[1,4]", "s32[1,4]", "{{1, 2, 3, 4}}", "s32[2,4]",
                     "{{1, 10, 1, 10}, {100, 1000, 100, 1000}}",
                     "window={}, dim_labels=bf_io->bf, feature_group_count=2"),
            "{{201,2010,403,4030}}");
  // Two groups of the batch, of which each makes an output feature.
  EXPECT_EQ(Convolve("s32[2,2]", "s32[4,1]", "{{1}, {2}, {3}, {4}}", "s32[1,2]", "{{10, 100}}",
                     "window={}, dim_labels=bf_io->bf, batch_group_count=2"),
            "{{10,300},{20,400}}");
}

// Of 4 x 4 numbers, holes between them, by windows that are four places apart.
TEST(InterpConvolution, TwoDimensions) {
  auto convolve = [](std::string_view result, std::string_view lhs, std::string_view rhs,
                     std::string_view attributes) {
    return ValueOf(Cat("HloModule m\nENTRY e { l = s32[4,4] constant({{1, 2, 5, 6}, {3, 4, 7, 8}, ",
                       "{10, 11, 14, 15}, {12, 13, 16, 17}})\n  x = s32", lhs,
                       " reshape(l)\n  one = s32[] constant(1)\n  w = s32", rhs,
                       " broadcast(one), dimensions={}\n  ROOT r = s32", result,
                       " convolution(x, w), ", attributes, " }"));
  };
  EXPECT_EQ(convolve("[1,2,2,1]", "[1,4,4,1]", "[3,3,1,1]",
                     "window={size=3x3 stride=4x4 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f"),
            "{{{{10},{26}},{{46},{62}}}}");
  EXPECT_EQ(convolve("[1,2,2,1]", "[1,4,4,1]", "[3,3,1,1]",
                     "window={size=3x3 stride=4x4 pad=1_1x1_1 lhs_dilate=2x2}, "
                     "dim_labels=b01f_01io->b01f"),
            "{{{{1},{5}},{{10},{14}}}}");
  EXPECT_EQ(convolve("[1,1,2,4]", "[1,4,4,1]", "[1,2,1,4]",
                     "window={size=1x2 stride=4x4 lhs_dilate=2x2}, dim_labels=0b1f_01io->b01f, "
                     "batch_group_count=4"),
            "{{{{1,3,10,12},{5,7,14,16}}}}");
  EXPECT_EQ(convolve("[1,2,1,4]", "[1,4,4,1]", "[1,2,1,4]",
                     "window={size=1x1 stride=4x4 lhs_dilate=2x2}, dim_labels=b0f1_0i1o->b01f, "
                     "feature_group_count=2"),
            "{{{{3,3,11,11}},{{21,21,29,29}}}}");
}

TEST(InterpConvolution, SumsAreRoundedOnce) {
  EXPECT_EQ(ValueOf(R"(HloModule m
ENTRY e { x = bf16[1,3] constant({{256, 1, 1}})
  w = bf16[3,1] constant({{1}, {1}, {1}})
  a = bf16[1,1] convolution(x, w), window={}, dim_labels=bf_io->bf
  b = f32[1,1] convolution(x, w), window={}, dim_labels=bf_io->bf
  y = s8[1,2] constant({{100, 100}})
  v = s8[2,1] constant({{1}, {2}})
  c = s8[1,1] convolution(y, v), window={}, dim_labels=bf_io->bf
  d = s32[1,1] convolution(y, v), window={}, dim_labels=bf_io->bf
  ROOT r = (bf16[1,1], f32[1,1], s8[1,1], s32[1,1]) tuple(a, b, c, d) })"),
            "({{258}},{{258}},{{44}},{{300}})");
}

TEST(InterpConvolution, PredsAreOrOverAnd) {
  EXPECT_EQ(ValueOf(R"(HloModule m
ENTRY e { x = pred[1,4] constant({{1, 0, 0, 1}})
  w = pred[2,1,1] constant({{{1}}, {{1}}})
  l = pred[1,4,1] reshape(x)
  ROOT c = pred[1,4,1] convolution(l, w), window={size=2 pad=0_1}, dim_labels=b0f_0io->b0f })"),
            "{{{1},{0},{1},{1}}}");
}

TEST(InterpConvolution, EmptyArrays) {
  EXPECT_EQ(Convolve("s32[0,2]", "s32[0,3]", "{}", "s32[3,2]", "{{1, 2}, {3, 4}, {5, 6}}",
                     "window={}, dim_labels=bf_io->bf"),
            "{}");
  EXPECT_EQ(Convolve("s32[2,1]", "s32[2,0]", "{{}, {}}", "s32[0,1]", "{}",
                     "window={}, dim_labels=bf_io->bf"),
            "{{0},{0}}");
  EXPECT_EQ(Convolve("s32[1,2,1]", "s32[1,0,1]", "{{}}", "s32[2,1,1]", "{{{1}}, {{2}}}",
                     "window={size=2 pad=1_2}, dim_labels=b0f_0io->b0f"),
            "{{{0},{0}}}");
}

TEST(InterpConvolution, Patches) {
  EXPECT_EQ(ValueOf(R"(HloModule m
ENTRY e { x = s32[3] constant({1, 2, 3})
  a = s32[2,2] kiln.patches(x), window={size=2}
  b = s32[3,2] kiln.patches(x), window={size=2 stride=2 pad=1_3}
  c = s32[3,3] kiln.patches(x), window={size=3 lhs_dilate=2 rhs_reversal=1}
  d = s32[1,2] kiln.patches(x), window={size=2 rhs_dilate=2}
  ROOT r = (s32[2,2], s32[3,2], s32[3,3], s32[1,2]) tuple(a, b, c, d) })"),
            "({{1,2},{2,3}},{{0,1},{2,3},{0,0}},"
            "{{2,0,1},{0,2,0},{3,0,2}},{{1,3}})");
  EXPECT_EQ(ValueOf(R"(HloModule m
ENTRY e { x = pred[2,3] constant({{1, 0, 1}, {0, 1, 1}})
  ROOT a = pred[1,2,2,2] kiln.patches(x), window={size=2x2} })"),
            "{{{{1,0},{0,1}},{{0,1},{1,1}}}}");
}

std::string SelectAndScatter(std::string_view shape, std::string_view x, std::string_view source,
                             std::string_view values, std::string_view window,
                             std::string_view direction, std::string_view scatter) {
  return ValueOf(
      Cat("HloModule m\nselect { a = s32[] parameter(0)\n  b = s32[] parameter(1)\n",
          "  ROOT c = pred[] compare(a, b), direction=", direction,
          " }\nscatter { a = s32[] parameter(0)\n  b = s32[] parameter(1)\n", "  ROOT c = s32[] ",
          scatter, "(a, b) }\nENTRY e { x = ", shape, " constant(", x, ")\n  s = ", source,
          " constant(", values, ")\n  i = s32[] constant(10)\n  ROOT r = ", shape,
          " select-and-scatter(x, s, i), window={", window, "}, select=select, scatter=scatter }"));
}

// A sum of floats is rounded once: after the first half it would be 10 again.
TEST(InterpConvolution, SelectAndScatterOfFloats) {
  EXPECT_EQ(ValueOf("HloModule m\nselect { a = f8e4m3fn[] parameter(0)\n"
                    "  b = f8e4m3fn[] parameter(1)\n"
                    "  ROOT c = pred[] compare(a, b), direction=GE }\n"
                    "scatter { a = f8e4m3fn[] parameter(0)\n  b = f8e4m3fn[] parameter(1)\n"
                    "  ROOT c = f8e4m3fn[] add(a, b) }\n"
                    "ENTRY e { x = f8e4m3fn[3] constant({1, 9, 2})\n"
                    "  s = f8e4m3fn[3] constant({0.5, 0.5, 0})\n"
                    "  i = f8e4m3fn[] constant(10)\n"
                    "  ROOT r = f8e4m3fn[3] select-and-scatter(x, s, i), "
                    "window={size=3 pad=1_1}, select=select, scatter=scatter }"),
            "{10,11,10}");
}

TEST(InterpConvolution, SelectAndScatter) {
  EXPECT_EQ(SelectAndScatter("s32[4,2]", "{{1, 5}, {2, 5}, {3, 6}, {4, 4}}", "s32[2,2]",
                             "{{5, 6}, {7, 8}}", "size=3x1 stride=2x1 pad=0_1x0_0", "GE", "add"),
            "{{10,10},{10,10},{15,24},{17,10}}");
  // The first of equal elements, and the last of them.
  EXPECT_EQ(SelectAndScatter("s32[4]", "{7, 7, 7, 7}", "s32[2]", "{1, 2}", "size=2 stride=2", "GE",
                             "add"),
            "{11,10,12,10}");
  EXPECT_EQ(SelectAndScatter("s32[4]", "{7, 7, 7, 7}", "s32[2]", "{1, 2}", "size=2 stride=2", "GT",
                             "add"),
            "{10,11,10,12}");
  // Windows that meet at one element go in order: ((10 - 1) - 2) - 3.
  EXPECT_EQ(SelectAndScatter("s32[3]", "{1, 9, 2}", "s32[3]", "{1, 2, 3}", "size=3 pad=1_1", "GE",
                             "subtract"),
            "{10,4,10}");
  // A window of padding alone gives nothing to anybody.
  EXPECT_EQ(SelectAndScatter("s32[2]", "{1, 2}", "s32[4]", "{1, 2, 3, 4}",
                             "size=2 stride=2 pad=2_4", "GE", "add"),
            "{10,12}");
  // Elements in front of the first window, and behind the last.
  EXPECT_EQ(SelectAndScatter("s32[5]", "{9, 1, 2, 1, 9}", "s32[1]", "{5}", "size=3 pad=-1_-1", "GE",
                             "add"),
            "{10,10,15,10,10}");
  EXPECT_EQ(SelectAndScatter("s32[2]", "{1, 2}", "s32[0]", "{}", "size=3", "GE", "add"), "{10,10}");
}

// A computation with more in it than elementwise ops is called.
TEST(InterpConvolution, SelectByAnotherComputation) {
  EXPECT_EQ(ValueOf(R"(HloModule m
larger { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GE }
select { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] call(a, b), to_apply=larger }
scatter { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[4] constant({1, 2, 4, 3})
  s = f32[2] constant({0.5, 0.25})
  i = f32[] constant(0)
  ROOT r = f32[4] select-and-scatter(x, s, i), window={size=2 stride=2}, select=select, scatter=scatter })"),
            "{0,0.5,0.25,0}");
}

}  // namespace
}  // namespace kiln

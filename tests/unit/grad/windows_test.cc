// Derivatives of reductions over windows, of the gradient of pooling, and of convolutions.
#include <gtest/gtest.h>

#include "unit/grad/check.h"

namespace kiln::grad {
namespace {

// A square of a reduce-window of x.
std::string Windows(std::string_view shape, std::string_view window, std::string_view result,
                    std::string_view computation, std::string_view init) {
  return Cat("x = ", shape, " parameter(0)\n  init = f64[] ", init, "\n  s = ", result,
             " reduce-window(x, init), window={", window, "}, to_apply=", computation,
             "\n  ROOT r = ", result, " multiply(s, s)");
}

struct Window {
  std::string_view shape, window, result;
};

// Strides with a rest, padding, cut edges, holes of both kinds, and cumulative windows.
constexpr Window kWindows[] = {
    {"f64[7]", "size=3 stride=2", "f64[3]"},
    {"f64[8]", "size=3 stride=2", "f64[3]"},
    {"f64[3,6]", "size=1x3 pad=0_0x1_2", "f64[3,7]"},
    {"f64[3,6]", "size=2x3 stride=1x2 pad=1_0x-1_0", "f64[3,2]"},
    {"f64[5]", "size=3 pad=1_3 lhs_dilate=2", "f64[11]"},
    {"f64[9]", "size=3 stride=2 rhs_dilate=2 pad=1_0", "f64[3]"},
    {"f64[4,5]", "size=2x3 stride=2x1 pad=2_2x3_0 lhs_dilate=3x2 rhs_dilate=1x2", "f64[7,8]"},
    {"f64[6,2]", "size=6x1 pad=5_0x0_0", "f64[6,2]"},
    {"f64[2,3]", "size=1x1", "f64[2,3]"},
    {"f64[3]", "size=2 pad=3_3", "f64[8]"},
};

TEST(GradWindows, Sums) {
  for (const Window& w : kWindows) {
    for (std::string_view init : {"constant(0)", "parameter(1)"}) {
      ExpectDerivativesOf(Windows(w.shape, w.window, w.result, "add", init));
    }
  }
}

TEST(GradWindows, ProductsAndExtrema) {
  for (const Window& w : kWindows) {
    for (std::string_view computation : {"mul", "max", "min"}) {
      for (std::string_view init : {"constant(0.25)", "parameter(1)"}) {
        ExpectDerivativesOf(Windows(w.shape, w.window, w.result, computation, init));
      }
    }
    ExpectDerivativesOf(Windows(w.shape, w.window, w.result, "mul", "constant(1)"));
  }
  for (const auto& [computation, identity] :
       {std::pair{"max", "constant(-inf)"}, {"min", "constant(inf)"}}) {
    for (const Window& w : std::span(kWindows).first(4)) {
      ExpectDerivativesOf(Windows(w.shape, w.window, w.result, computation, identity));
    }
  }
}

TEST(GradWindows, TheFirstOfEqualOnes) {
  const std::vector<Literal> x = {Doubles({5}, {1, 3, 3, 0, 3})};
  for (std::string_view attributes : {"size=3", "size=3 lhs_dilate=1"}) {
    const auto g = GradientsAt(
        Cat("x = f64[5] parameter(0)\n  low = f64[] constant(-inf)\n",
            "  ROOT r = f64[3] reduce-window(x, low), window={", attributes, "}, to_apply=max"),
        x);
    EXPECT_EQ(g[0].ToString(), "{0, 2, 1, 0, 0}");
  }
}

// Each element is in many windows, which are not looked at one by one.
TEST(GradWindows, CumulativeExtrema) {
  for (const auto& [computation, identity] :
       {std::pair{"max", "constant(-inf)"}, {"min", "constant(inf)"}}) {
    ExpectDerivativesOf(
        Windows("f64[100,2]", "size=100x1 pad=99_0x0_0", "f64[100,2]", computation, identity));
  }
}

// Padding that a computation must not see.
TEST(GradWindows, OtherComputations) {
  for (const Window& w : kWindows) {
    ExpectDerivatives(Cat(R"(HloModule m
logadd {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  p = f64[] exponential(a)
  q = f64[] exponential(b)
  s = f64[] add(p, q)
  ROOT r = f64[] log(s)
}
ENTRY e {
  x = )",
                          w.shape, R"( parameter(0)
  init = f64[] parameter(1)
  ROOT r = )",
                          w.result, " reduce-window(x, init), window={", w.window,
                          "}, to_apply=logadd\n}"));
  }
}

TEST(GradWindows, SeveralOperands) {
  for (const Window& w : kWindows) {
    ExpectDerivatives(Cat(R"(HloModule m
compose {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  c = f64[] parameter(2)
  d = f64[] parameter(3)
  ac = f64[] multiply(a, c)
  bd = f64[] add(b, d)
  ROOT r = (f64[], f64[]) tuple(ac, bd)
}
ENTRY e {
  x = )",
                          w.shape, " parameter(0)\n  y = ", w.shape, R"( parameter(1)
  one = f64[] constant(1)
  zero = f64[] constant(0)
  ROOT r = ()",
                          w.result, ", ", w.result, ") reduce-window(x, y, one, zero), window={",
                          w.window, "}, to_apply=compose\n}"));
  }
}

TEST(GradWindows, SelectAndScatter) {
  struct Pooling {
    std::string_view shape, window, source;
  };
  constexpr Pooling kPoolings[] = {
      {"f64[7]", "size=3 stride=2", "f64[3]"},
      {"f64[2,6,3]", "size=1x3x2 stride=1x2x1 pad=0_0x1_1x0_1", "f64[2,3,3]"},
      {"f64[3]", "size=2 pad=3_3", "f64[8]"},
      {"f64[3]", "size=1", "f64[3]"},
  };
  for (const Pooling& p : kPoolings) {
    for (std::string_view scatter : {"add", "max"}) {
      ExpectDerivatives(Cat(R"(HloModule m
ge { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }
add { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] add(a, b) }
max { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] maximum(a, b) }
ENTRY e {
  x = )",
                            p.shape, " parameter(0)\n  y = ", p.source,
                            " parameter(1)\n  init = f64[] parameter(2)\n  s = ", p.shape,
                            " select-and-scatter(x, y, init), window={", p.window,
                            "}, select=ge, scatter=", scatter, "\n  ROOT r = ", p.shape,
                            " multiply(s, s)\n}"));
    }
  }
}

struct Convolution {
  std::string_view lhs, rhs, result, window, labels, more;
};

TEST(GradWindows, Convolutions) {
  constexpr Convolution kConvolutions[] = {
      {"f64[2,7,3]", "f64[3,3,4]", "f64[2,5,4]", "size=3", "b0f_0io->b0f", ""},
      // A rest behind the last place, holes, cut edges, a reversed window.
      {"f64[2,3,8]", "f64[4,3,3]", "f64[2,4,3]", "size=3 stride=2", "bf0_oi0->bf0", ""},
      {"f64[2,3,8]", "f64[4,3,2]", "f64[2,4,6]", "size=2 pad=1_-2 rhs_dilate=1 rhs_reversal=1",
       "bf0_oi0->bf0", ""},
      {"f64[2,3,5]", "f64[4,3,3]", "f64[2,4,5]",
       "size=3 stride=2 pad=3_1 lhs_dilate=2 rhs_dilate=2", "bf0_oi0->bf0", ""},
      // Dimensions in any order.
      {"f64[5,2,6,3]", "f64[2,4,3,3]", "f64[4,4,2,3]", "size=2x3 stride=1x2 pad=0_0x1_0",
       "0b1f_0oi1->f0b1", ""},
      // Groups.
      {"f64[2,6,5]", "f64[4,3,3]", "f64[2,4,5]", "size=3 pad=1_1", "bf0_oi0->bf0",
       ", feature_group_count=2"},
      {"f64[2,3,5]", "f64[6,1,3]", "f64[2,6,3]", "size=3 stride=2 pad=1_1", "bf0_oi0->bf0",
       ", feature_group_count=3"},
      {"f64[5,6,4]", "f64[3,2,6]", "f64[5,6,4]", "size=3 pad=1_1 rhs_reversal=1", "0fb_0io->0fb",
       ", feature_group_count=3"},
      {"f64[6,2,5]", "f64[4,2,3]", "f64[3,4,5]", "size=3 pad=1_1", "bf0_oi0->bf0",
       ", batch_group_count=2"},
      {"f64[5,4,2]", "f64[2,6,3]", "f64[2,6,3]", "size=3 stride=2 pad=1_1", "0bf_io0->bf0",
       ", batch_group_count=2"},
      {"f64[2,3,3]", "f64[3,3,4]", "f64[2,1,4]", "size=3", "b0f_0io->b0f", ""},
      {"f64[2,4]", "f64[4,3]", "f64[2,3]", "", "bf_io->bf", ""},
  };
  for (const Convolution& c : kConvolutions) {
    ExpectDerivativesOf(Cat("x = ", c.lhs, " parameter(0)\n  w = ", c.rhs,
                            " parameter(1)\n  c = ", c.result, " convolution(x, w), window={",
                            c.window, "}, dim_labels=", c.labels, c.more, "\n  ROOT r = ", c.result,
                            " multiply(c, c)"));
  }
}

TEST(GradWindows, ComplexConvolution) {
  ExpectDerivativesOf(R"(
  x = c128[2,3,6] parameter(0)
  w = c128[4,3,3] parameter(1)
  ROOT r = c128[2,4,4] convolution(x, w), window={size=3}, dim_labels=bf0_oi0->bf0)");
}

TEST(GradWindows, BatchNorm) {
  ExpectDerivativesOf(R"(
  x = f64[4,3,2] parameter(0)
  scale = f64[3] parameter(1)
  offset = f64[3] parameter(2)
  n = (f64[4,3,2], f64[3], f64[3]) batch-norm-training(x, scale, offset), epsilon=0.1, feature_index=1
  y = f64[4,3,2] get-tuple-element(n), index=0
  mean = f64[3] get-tuple-element(n), index=1
  variance = f64[3] get-tuple-element(n), index=2
  s = f64[4,3,2] sine(y)
  m = f64[3] multiply(mean, variance)
  ROOT r = (f64[4,3,2], f64[3]) tuple(s, m))");
  ExpectDerivativesOf(R"(
  x = f64[4,3] parameter(0)
  scale = f64[3] parameter(1)
  offset = f64[3] parameter(2)
  mean = f64[3] parameter(3)
  v = f64[3] parameter(4)
  variance = f64[3] multiply(v, v)
  ROOT r = f64[4,3] batch-norm-inference(x, scale, offset, mean, variance), epsilon=0.1, feature_index=1)");
  ExpectDerivativesOf(R"(
  x = f64[4,3] parameter(0)
  scale = f64[3] parameter(1)
  mean = f64[3] parameter(2)
  v = f64[3] parameter(3)
  g = f64[4,3] parameter(4)
  variance = f64[3] multiply(v, v)
  ROOT r = (f64[4,3], f64[3], f64[3]) batch-norm-grad(x, scale, mean, variance, g), epsilon=0.1, feature_index=1)");
}

}  // namespace
}  // namespace kiln::grad

// Derivatives of reductions, maps, and ops that put elements in order.
#include <gtest/gtest.h>

#include <cmath>

#include "unit/grad/check.h"

namespace kiln::grad {
namespace {

TEST(GradReduce, SumsWithAnInitialValue) {
  ExpectDerivativesOf(R"(
  x = f64[3,4,2] parameter(0)
  init = f64[] parameter(1)
  s = f64[4] reduce(x, init), dimensions={2,0}, to_apply=add
  ROOT r = f64[4] multiply(s, s))");
}

TEST(GradReduce, ExtremaAndProducts) {
  for (const auto& [computation, identity] :
       {std::pair{"max", "-inf"}, {"min", "inf"}, {"mul", "1"}}) {
    for (const std::string& init : {Cat("constant(", identity, ")"), std::string("constant(0.5)"),
                                    std::string("parameter(1)")}) {
      ExpectDerivativesOf(Cat("x = f64[3,5,2] parameter(0)\n  init = f64[] ", init, R"(
  s = f64[5] reduce(x, init), dimensions={0,2}, to_apply=)",
                              computation, "\n  ROOT r = f64[5] sine(s)"));
    }
  }
}

TEST(GradReduce, ProductsWithZeros) {
  for (int zeros : {1, 2, 3}) {
    std::vector<double> x = {2, 3, 4, 5, 7};
    for (int k = 0; k < zeros; ++k) x[static_cast<size_t>(2 * k)] = 0;
    ExpectDerivativesOf(R"(
  x = f64[5] parameter(0)
  one = f64[] constant(1)
  ROOT r = f64[] reduce(x, one), dimensions={0}, to_apply=mul)",
                        {Doubles({5}, x)});
  }
}

TEST(GradReduce, EqualOnesShare) {
  const auto g = GradientsAt(R"(
  x = f64[4] parameter(0)
  init = f64[] parameter(1)
  ROOT r = f64[] reduce(x, init), dimensions={0}, to_apply=max)",
                             {Doubles({4}, {1, 3, 3, 2}), Doubles({}, {3})});
  EXPECT_EQ(g[0].ToString(), "{0, 0.3333333333333333, 0.3333333333333333, 0}");
  EXPECT_EQ(g[1].ToString(), "0.3333333333333333");
  // The identity is no value of its own.
  const auto h = GradientsAt(R"(
  x = f64[2] parameter(0)
  init = f64[] constant(-inf)
  ROOT r = f64[] reduce(x, init), dimensions={0}, to_apply=max)",
                             {Doubles({2}, {-INFINITY, -INFINITY})});
  EXPECT_EQ(h[0].ToString(), "{0.5, 0.5}");
}

TEST(GradReduce, OfNothing) {
  for (std::string_view computation : {"add", "mul", "max"}) {
    const auto g = GradientsAt(Cat(R"(
  x = f64[2,0] parameter(0)
  init = f64[] parameter(1)
  ROOT r = f64[2] reduce(x, init), dimensions={1}, to_apply=)",
                                   computation),
                               {Doubles({2, 0}, {}), Doubles({}, {3})});
    ASSERT_EQ(g.size(), 2u);
    EXPECT_EQ(g[0].shape(), Shape(ElementType::kF64, {2, 0}));
    EXPECT_EQ(g[1].ToString(), "2");
  }
}

// A value and its position; sums of logarithms; a computation that depends on the order.
TEST(GradReduce, OtherComputations) {
  ExpectDerivatives(R"(HloModule m
greatest {
  a = f64[] parameter(0)
  i = s32[] parameter(1)
  b = f64[] parameter(2)
  j = s32[] parameter(3)
  first = pred[] compare(a, b), direction=GE
  value = f64[] select(first, a, b)
  position = s32[] select(first, i, j)
  ROOT r = (f64[], s32[]) tuple(value, position)
}
ENTRY e {
  x = f64[3,7] parameter(0)
  i = s32[3,7] iota(), iota_dimension=1
  low = f64[] constant(-inf)
  zero = s32[] constant(0)
  r = (f64[3], s32[3]) reduce(x, i, low, zero), dimensions={1}, to_apply=greatest
  value = f64[3] get-tuple-element(r), index=0
  ROOT s = f64[3] multiply(value, value)
})");
  ExpectDerivatives(R"(HloModule m
inner { a = f64[] parameter(0) ROOT r = f64[] log(a) }
logadd {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  p = f64[] exponential(a)
  q = f64[] exponential(b)
  s = f64[] add(p, q)
  ROOT r = f64[] call(s), to_apply=inner
}
ENTRY e {
  x = f64[3,7] parameter(0)
  init = f64[] parameter(1)
  ROOT r = f64[7] reduce(x, init), dimensions={0}, to_apply=logadd
})");
  // (a, b) after (c, d): x -> a x + b
  ExpectDerivatives(R"(HloModule m
compose {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  c = f64[] parameter(2)
  d = f64[] parameter(3)
  ac = f64[] multiply(a, c)
  bc = f64[] multiply(b, c)
  bcd = f64[] add(bc, d)
  ROOT r = (f64[], f64[]) tuple(ac, bcd)
}
ENTRY e {
  x = f64[11] parameter(0)
  y = f64[11] parameter(1)
  one = f64[] constant(1)
  zero = f64[] constant(0)
  ROOT r = (f64[], f64[]) reduce(x, y, one, zero), dimensions={0}, to_apply=compose
})");
}

TEST(GradReduce, Complex) {
  ExpectDerivativesOf(R"(
  x = c128[3,4] parameter(0)
  init = c128[] parameter(1)
  s = c128[3] reduce(x, init), dimensions={1}, to_apply=cadd
  ROOT r = c128[3] multiply(s, s))");
}

TEST(GradReduce, Map) {
  ExpectDerivatives(R"(HloModule m
f {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  two = f64[] constant(2)
  c = f64[] multiply(a, two)
  s = f64[] sine(c)
  ROOT r = f64[] multiply(s, b)
}
ENTRY e {
  x = f64[3,2] parameter(0)
  y = f64[3,2] parameter(1)
  ROOT r = f64[3,2] map(x, y), dimensions={0,1}, to_apply=f
})");
}

TEST(GradReduce, WhatIsNoFunctionOfElements) {
  EXPECT_NE(GradientError(R"(HloModule m
odd {
  a = f64[] parameter(0)
  b = f64[1] reshape(a)
  c = f64[1] reverse(b), dimensions={0}
  ROOT r = f64[] reshape(c)
}
ENTRY e {
  x = f64[3] parameter(0)
  ROOT r = f64[3] map(x), dimensions={0}, to_apply=odd
})")
                .find("with the op reshape"),
            std::string::npos);
}

TEST(GradSort, OneOperand) {
  for (std::string_view computation : {"less", "more"}) {
    ExpectDerivativesOf(Cat(R"(
  x = f64[3,5,2] parameter(0)
  s = f64[3,5,2] sort(x), dimensions={1}, to_apply=)",
                            computation, "\n  ROOT r = f64[3,5,2] multiply(s, s)"));
  }
}

TEST(GradSort, SeveralOperands) {
  for (std::string_view count : {"iota(), iota_dimension=1", "iota(), iota_dimension=0"}) {
    ExpectDerivatives(Cat(R"(HloModule m
by_second {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  c = f64[] parameter(2)
  d = f64[] parameter(3)
  i = s32[] parameter(4)
  j = s32[] parameter(5)
  ROOT r = pred[] compare(c, d), direction=LT
}
ENTRY e {
  x = f64[2,5] parameter(0)
  y = f64[2,5] parameter(1)
  i = s32[2,5] )",
                          count, R"(
  s = (f64[2,5], f64[2,5], s32[2,5]) sort(x, y, i), dimensions={1}, to_apply=by_second
  a = f64[2,5] get-tuple-element(s), index=0
  b = f64[2,5] get-tuple-element(s), index=1
  ROOT r = f64[2,5] multiply(a, b)
})"));
  }
}

TEST(GradSort, EqualKeysKeepTheirOrder) {
  const auto g = GradientsAt(R"(
  x = f64[3] parameter(0)
  s = f64[3] sort(x), dimensions={0}, to_apply=less
  c = f64[3] constant({1, 2, 3})
  ROOT r = f64[3] multiply(s, c))",
                             {Doubles({3}, {5, 4, 4})});
  EXPECT_EQ(g[0].ToString(), "{3, 1, 2}");
}

TEST(GradSort, TopK) {
  for (std::string_view largest : {"true", "false"}) {
    ExpectDerivativesOf(Cat(R"(
  x = f64[3,6] parameter(0)
  s = (f64[3,2], s32[3,2]) topk(x), k=2, largest=)",
                            largest, R"(
  v = f64[3,2] get-tuple-element(s), index=0
  ROOT r = f64[3,2] multiply(v, v))"));
  }
}

}  // namespace
}  // namespace kiln::grad

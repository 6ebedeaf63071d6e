// The evaluator's reductions and dots.
#include <gtest/gtest.h>

#include <chrono>

#include "support/interp.h"

namespace kiln {
namespace {

using testing::Eval;
using testing::ValueOf;

// A reduce of one operand by one op.
std::string ReduceBy(std::string_view op, std::string_view type, std::string_view operand,
                     std::string_view init, std::string_view dimensions, std::string_view result) {
  return ValueOf(Cat("HloModule m\nr {\n  a = ", type, "[] parameter(0)\n  b = ", type,
                     "[] parameter(1)\n  ROOT c = ", type, "[] ", op,
                     "(a, b)\n}\nENTRY e {\n  x = ", operand, "\n  i = ", type, "[] constant(",
                     init, ")\n  ROOT y = ", result, " reduce(x, i), dimensions={", dimensions,
                     "}, to_apply=r\n}\n"));
}

constexpr std::string_view kMatrix = "s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})";

TEST(InterpReduce, Dimensions) {
  EXPECT_EQ(ReduceBy("add", "s32", kMatrix, "10", "0", "s32[3]"), "{15, 17, 19}");
  EXPECT_EQ(ReduceBy("add", "s32", kMatrix, "10", "1", "s32[2]"), "{16, 25}");
  EXPECT_EQ(ReduceBy("add", "s32", kMatrix, "10", "0,1", "s32[]"), "31");
  EXPECT_EQ(ReduceBy("add", "s32", kMatrix, "10", "1,0", "s32[]"), "31");
  // None: the reducer still sees init and element once.
  EXPECT_EQ(ReduceBy("multiply", "s32", kMatrix, "10", "", "s32[2,3]"),
            "{ { 10, 20, 30 }, { 40, 50, 60 } }");
}

TEST(InterpReduce, OfNothingIsInit) {
  EXPECT_EQ(ReduceBy("maximum", "f32", "f32[0] constant({})", "-inf", "0", "f32[]"), "-inf");
  EXPECT_EQ(ReduceBy("add", "f32", "f32[2,0] constant({{}, {}})", "3", "1", "f32[2]"), "{3, 3}");
  EXPECT_EQ(ReduceBy("add", "f32", "f32[0,2] constant({})", "3", "1", "f32[0]"), "{}");
  EXPECT_EQ(ReduceBy("add", "f32", "f32[] constant(2)", "3", "", "f32[]"), "5");
}

TEST(InterpReduce, ShortSumsAreAsMachinesHaveThem) {
  // In order, each 1 is lost in f32.
  EXPECT_EQ(ReduceBy("add", "f32", "f32[4] constant({16777216, 1, 1, 1})", "0", "0", "f32[]"),
            "16777216");
  EXPECT_EQ(ReduceBy("add", "f32", "f32[4] constant({1, 1, 1, 16777216})", "0", "0", "f32[]"),
            "16777220");
  EXPECT_EQ(ReduceBy("add", "f32", "f32[2] constant({-0, -0})", "-0", "0", "f32[]"), "-0");
  // Other reducers are taken by the letter.
  EXPECT_EQ(ReduceBy("subtract", "f32", "f32[3] constant({1, 2, 3})", "10", "0", "f32[]"), "4");
}

TEST(InterpReduce, ByPredAndU8) {
  EXPECT_EQ(ReduceBy("and", "pred", "pred[3] constant({1, 1, 0})", "true", "0", "pred[]"), "false");
  EXPECT_EQ(ReduceBy("add", "u8", "u8[3] constant({100, 100, 100})", "0", "0", "u8[]"), "44");
}

TEST(InterpReduce, TheOrderIsRowMajorFromTheLeft) {
  // acc * 10 + x spells the digits in the order in which they are met.
  EXPECT_EQ(ValueOf(R"(HloModule m
r {
  a = s64[] parameter(0)
  b = s64[] parameter(1)
  ten = s64[] constant(10)
  m = s64[] multiply(a, ten)
  ROOT c = s64[] add(m, b)
}
ENTRY e {
  x = s64[2,2,2] constant({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}})
  i = s64[] constant(0)
  ROOT y = s64[2] reduce(x, i), dimensions={2,0}, to_apply=r
})"),
            "{1256, 3478}");
}

constexpr std::string_view kArgMax = R"(HloModule m
r {
  v = f32[] parameter(0)
  i = s32[] parameter(1)
  w = f32[] parameter(2)
  j = s32[] parameter(3)
  keep = pred[] compare(v, w), direction=GE
  s = f32[] select(keep, v, w)
  t = s32[] select(keep, i, j)
  ROOT out = (f32[], s32[]) tuple(s, t)
}
ENTRY e {
  x = f32[2,3] constant({{1, 7, 7}, {-1, -3, -2}})
  n = s32[2,3] iota(), iota_dimension=1
  low = f32[] constant(-inf)
  none = s32[] constant(-1)
  ROOT y = (f32[2], s32[2]) reduce(x, n, low, none), dimensions={1}, to_apply=r
})";

TEST(InterpReduce, SeveralOperands) { EXPECT_EQ(ValueOf(kArgMax), "({7, -1}, {1, 0})"); }

TEST(InterpReduce, ResultsMayBeInitsParametersAndConstants) {
  // The accumulators change places at every element.
  EXPECT_EQ(ValueOf(R"(HloModule m
r {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  x = s32[] parameter(2)
  y = s32[] parameter(3)
  ROOT out = (s32[], s32[]) tuple(b, a)
}
ENTRY e {
  x = s32[3] constant({1, 2, 3})
  p = s32[] constant(10)
  q = s32[] constant(20)
  ROOT z = (s32[], s32[]) reduce(x, x, p, q), dimensions={0}, to_apply=r
})"),
            "(20, 10)");
}

TEST(InterpReduce, ReducerWithControlFlow) {
  // The reducer divides its element by 2 until it is odd, and adds it.
  constexpr std::string_view text = R"(HloModule m
even {
  p = (s32[]) parameter(0)
  v = s32[] get-tuple-element(p), index=0
  two = s32[] constant(2)
  rest = s32[] remainder(v, two)
  zero = s32[] constant(0)
  ROOT c = pred[] compare(rest, zero), direction=EQ
}
halve {
  p = (s32[]) parameter(0)
  v = s32[] get-tuple-element(p), index=0
  two = s32[] constant(2)
  half = s32[] divide(v, two)
  ROOT c = (s32[]) tuple(half)
}
r {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  t = (s32[]) tuple(b)
  w = (s32[]) while(t), condition=even, body=halve
  odd = s32[] get-tuple-element(w), index=0
  ROOT c = s32[] add(a, odd)
}
ENTRY e {
  x = s32[3] constant({8, 3, 12})
  i = s32[] constant(100)
  ROOT y = s32[] reduce(x, i), dimensions={0}, to_apply=r
})";
  EXPECT_EQ(ValueOf(text), "107");
  EXPECT_EQ(ValueOf(text, {}, {.max_work = 500}),
            "DEADLINE_EXCEEDED: evaluation takes more work than 500");
}

TEST(InterpReduce, LargeOnesAreCounted) {
  std::string text(kArgMax);
  // Its instructions alone are less.
  EXPECT_EQ(ValueOf(text, {}, {.max_work = 400}),
            "DEADLINE_EXCEEDED: evaluation takes more work than 400");
  EXPECT_EQ(ValueOf(text, {}, {.max_work = 600}), "({7, -1}, {1, 0})");
}

TEST(InterpDot, Matrices) {
  EXPECT_EQ(Eval("s32[2,2] dot(s32[2,3] constant({{1, 2, 3}, {4, 5, 6}}), "
                 "s32[3,2] constant({{1, 0}, {0, 1}, {1, 1}})), "
                 "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
            "{ { 4, 5 }, { 10, 11 } }");
  // Either side may be contracted over its rows.
  EXPECT_EQ(Eval("s32[3,3] dot(s32[2,3] constant({{1, 2, 3}, {4, 5, 6}}), "
                 "s32[3,2] constant({{1, 0}, {0, 1}, {1, 1}})), "
                 "lhs_contracting_dims={0}, rhs_contracting_dims={1}"),
            "{ { 1, 4, 5 }, { 2, 5, 7 }, { 3, 6, 9 } }");
}

TEST(InterpDot, BatchesComeFirst) {
  // Batch dimension 1 of lhs with 0 of rhs; the result is batch, lhs's rest, rhs's rest.
  EXPECT_EQ(Eval("f32[2,1,2] dot(f32[1,2,2] constant({{{1, 2}, {3, 4}}}), "
                 "f32[2,2,2] constant({{{1, 0}, {0, 1}}, {{1, 1}, {2, 2}}})), "
                 "lhs_batch_dims={1}, rhs_batch_dims={0}, "
                 "lhs_contracting_dims={2}, rhs_contracting_dims={1}"),
            "{ { { 1, 2 } }, { { 11, 11 } } }");
}

TEST(InterpDot, OfVectorsAndOuterProducts) {
  EXPECT_EQ(Eval("f64[] dot(f64[3] constant({1, 2, 3}), f64[3] constant({4, 5, 6})), "
                 "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
            "32");
  EXPECT_EQ(Eval("s64[2,2] dot(s64[2] constant({1, 2}), s64[2] constant({3, 4}))"),
            "{ { 3, 4 }, { 6, 8 } }");
  EXPECT_EQ(Eval("s64[] dot(s64[] constant(3), s64[] constant(4))"), "12");
}

TEST(InterpDot, SeveralContractingDimensionsInTheirOrder) {
  // lhs (0, 1) with rhs (1, 0): the sum over i, j of l[i, j] * r[j, i].
  EXPECT_EQ(Eval("s32[] dot(s32[2,2] constant({{1, 2}, {3, 4}}), "
                 "s32[2,2] constant({{5, 6}, {7, 8}})), "
                 "lhs_contracting_dims={0,1}, rhs_contracting_dims={1,0}"),
            "69");
}

TEST(InterpDot, Empty) {
  EXPECT_EQ(Eval("f32[2,2] dot(f32[2,0] constant({{}, {}}), f32[0,2] constant({})), "
                 "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
            "{ { 0, 0 }, { 0, 0 } }");
}

TEST(InterpDot, IntegersWrapAndPredIsOrOfAnd) {
  EXPECT_EQ(Eval("u8[] dot(u8[2] constant({200, 16}), u8[2] constant({2, 16})), "
                 "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
            "144");
  EXPECT_EQ(Eval("pred[2] dot(pred[2,2] constant({{1, 0}, {0, 1}}), pred[2] constant({0, 1})), "
                 "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
            "{0, 1}");
}

TEST(InterpReduce, LongSumsAreAccurate) {
  // In order, all ones would be lost; so only those of the first block are.
  EXPECT_EQ(ValueOf(R"(HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  one = f32[] constant(1)
  large = f32[1] constant({16777216})
  ones = f32[3200] broadcast(one), dimensions={}
  x = f32[3201] concatenate(large, ones), dimensions={0}
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=add
})"),
            "16780384");
}

TEST(InterpDot, IsAsMachinesHaveItAndInAWiderTypeIfAsked) {
  constexpr std::string_view operands =
      "dot(f32[3] constant({16777216, 1, -16777216}), f32[3] constant({1, 1, 1})), "
      "lhs_contracting_dims={0}, rhs_contracting_dims={0}";
  // In order, the 1 is lost in f32.
  EXPECT_EQ(Eval(Cat("f32[] ", operands)), "0");
  EXPECT_EQ(Eval(Cat("f64[] ", operands)), "1");
  // Products are not rounded: (1 + e)^2 - (1 + 2e) is e^2.
  EXPECT_EQ(Eval("f32[] dot(f32[2] constant({-1.0000002384185791, 1.0000001192092896}), f32[2] "
                 "constant({1, 1.0000001192092896})), lhs_contracting_dims={0}, "
                 "rhs_contracting_dims={0}"),
            "1.4210855e-14");
  EXPECT_EQ(Eval("f64[] dot(f32[1] constant({16777217}), f32[1] constant({16777215})), "
                 "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
            "281474959933440");
  EXPECT_EQ(Eval("s64[] dot(s32[1] constant({-2147483648}), s32[1] constant({2147483647})), "
                 "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
            "-4611686016279904256");
}

TEST(InterpDot, IsFastEnoughForTests) {
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(ValueOf(R"(HloModule m
ENTRY e {
  one = f32[] constant(1)
  x = f32[256,256] broadcast(one), dimensions={}
  d = f32[256,256] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT s = f32[1,1] slice(d), slice={[255:256], [255:256]}
})"),
            "{ {256} }");
  std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  // Half a second where the machine is not busy and the build is not one with sanitizers.
  EXPECT_LT(time.count(), 10);
  RecordProperty("milliseconds", static_cast<int>(time.count() * 1000));
}

}  // namespace
}  // namespace kiln

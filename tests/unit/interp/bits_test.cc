// The evaluator's ops on bits and positions: reverse, bitcast-convert, reduce-precision, map.
#include <gtest/gtest.h>

#include "support/interp.h"

namespace kiln {
namespace {

using testing::Eval;
using testing::ValueOf;

TEST(InterpShape, Reverse) {
  EXPECT_EQ(Eval("s32[3] reverse(s32[3] constant({1, 2, 3})), dimensions={0}"), "{3, 2, 1}");
  EXPECT_EQ(Eval("u8[2,3] reverse(u8[2,3] constant({{1, 2, 3}, {4, 5, 6}})), dimensions={1}"),
            "{ { 3, 2, 1 }, { 6, 5, 4 } }");
  EXPECT_EQ(Eval("f64[2,3] reverse(f64[2,3] constant({{1, 2, 3}, {4, 5, 6}})), dimensions={1,0}"),
            "{ { 6, 5, 4 }, { 3, 2, 1 } }");
  EXPECT_EQ(Eval("s32[2] reverse(s32[2] constant({1, 2})), dimensions={}"), "{1, 2}");
  EXPECT_EQ(Eval("s32[0,2] reverse(s32[0,2] constant({})), dimensions={0,1}"), "{  }");
  EXPECT_EQ(Eval("s32[] reverse(s32[] constant(4)), dimensions={}"), "4");
}

TEST(InterpShape, BitcastConvert) {
  EXPECT_EQ(Eval("s32[2] bitcast-convert(f32[2] constant({1, -0}))"), "{1065353216, -2147483648}");
  EXPECT_EQ(Eval("f64[] bitcast-convert(s64[] constant(4607182418800017408))"), "1");
  // Narrower elements: the lowest bits first.
  EXPECT_EQ(Eval("u8[2,4] bitcast-convert(s32[2] constant({16909060, -1}))"),
            "{ { 4, 3, 2, 1 }, { 255, 255, 255, 255 } }");
  EXPECT_EQ(Eval("f32[2] bitcast-convert(s64[] constant(4575657221408423936))"), "{0, 1}");
  // Wider ones.
  EXPECT_EQ(Eval("s32[1] bitcast-convert(u8[1,4] constant({{4, 3, 2, 1}}))"), "{16909060}");
  EXPECT_EQ(Eval("s64[] bitcast-convert(f32[2] constant({0, 1}))"), "4575657221408423936");
  EXPECT_EQ(Eval("u8[0,4] bitcast-convert(f32[0] constant({}))"), "{  }");
  // A pred is one bit of a byte or word, and no other element's bits are lost.
  EXPECT_EQ(Eval("pred[8] bitcast-convert(u8[] constant(141))"), "{1, 0, 1, 1, 0, 0, 0, 1}");
  EXPECT_EQ(Eval("u8[] bitcast-convert(pred[8] constant({1, 0, 1, 1, 0, 0, 0, 1}))"), "141");
  EXPECT_EQ(Eval("pred[2] bitcast-convert(pred[2] constant({1, 0}))"), "{1, 0}");
}

std::string ReducePrecision(std::string_view type, std::string_view values, int exponent,
                            int mantissa) {
  return Eval(Cat(type, " reduce-precision(", type, " constant(", values,
                  ")), exponent_bits=", exponent, ", mantissa_bits=", mantissa));
}

TEST(InterpElementwise, ReducePrecision) {
  // As f16 would hold it: nearest even, the largest number, overflow, what would be subnormal.
  EXPECT_EQ(
      ReducePrecision("f32[5]", "{1.00048828125, 1.00146484375, 65519, 65520, -70000}", 5, 10),
      "{1, 1.0019531, 65504, inf, -inf}");
  EXPECT_EQ(ReducePrecision("f32[4]", "{6.1035e-05, 6.1036e-05, -6.0e-05, 1e-40}", 5, 10),
            "{6.1035156e-05, 6.1035156e-05, -0, 0}");
  // Rounding may carry into the exponent.
  EXPECT_EQ(ReducePrecision("f32[3]", "{1.99, 3.5, 6}", 8, 1), "{2, 4, 6}");
  EXPECT_EQ(ReducePrecision("f32[4]", "{1.49, 1.5, 2.9, 3}", 8, 0), "{1, 2, 2, 2}");
  // With all bits of exponent subnormals are numbers like others.
  EXPECT_EQ(ReducePrecision("f32[]", "1.4e-45", 8, 22), "0");
  EXPECT_EQ(ReducePrecision("f32[]", "4.2e-45", 8, 22), "6e-45");
  // One bit of exponent leaves zeros and infinities.
  EXPECT_EQ(ReducePrecision("f32[4]", "{0.5, 1, 2, 3}", 1, 10), "{0, 0, inf, inf}");
  EXPECT_EQ(ReducePrecision("f32[3]", "{nan, inf, -inf}", 5, 10), "{nan, inf, -inf}");
  EXPECT_EQ(ReducePrecision("f32[2]", "{nan, -nan}", 5, 0), "{inf, -inf}");
  EXPECT_EQ(ReducePrecision("f64[3]", "{65519, 65520, 5e-324}", 5, 10), "{65504, inf, 0}");
  // As many bits as there are, or more.
  EXPECT_EQ(ReducePrecision("f32[3]", "{1.1, 1e-45, 3e38}", 8, 23),
            Eval("f32[3] constant({1.1, 1e-45, 3e38})"));
  EXPECT_EQ(ReducePrecision("f64[2]", "{1.1, 1e-320}", 1000, 1000),
            Eval("f64[2] constant({1.1, 1e-320})"));
}

TEST(InterpShape, GetDimensionSize) {
  EXPECT_EQ(Eval("s32[] get-dimension-size(f32[2,0,7] constant({{}, {}})), dimensions={2}"), "7");
  EXPECT_EQ(Eval("s32[] get-dimension-size(f32[2,0,7] constant({{}, {}})), dimensions={1}"), "0");
}

TEST(InterpMap, AppliesItsComputation) {
  EXPECT_EQ(ValueOf(R"(HloModule m
f { a = s32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] convert(a)
  k = f32[] constant(10)
  m = f32[] multiply(c, k)
  ROOT r = f32[] add(m, b) }
ENTRY e { x = s32[2,2] constant({{1, 2}, {3, 4}})
  y = f32[2,2] constant({{5, 6}, {7, 8}})
  ROOT r = f32[2,2] map(x, y), dimensions={0,1}, to_apply=f })"),
            "{ { 15, 26 }, { 37, 48 } }");
  // A computation that ignores its parameter, one that is its parameter, and no elements.
  EXPECT_EQ(ValueOf(R"(HloModule m
f { a = s32[] parameter(0)
  ROOT k = pred[] constant(true) }
g { ROOT a = s32[] parameter(0) }
ENTRY e { x = s32[2] constant({1, 2})
  y = s32[0] constant({})
  a = pred[2] map(x), dimensions={0}, to_apply=f
  b = s32[2] map(x), dimensions={0}, to_apply=g
  c = pred[0] map(y), dimensions={0}, to_apply=f
  ROOT r = (pred[2], s32[2], pred[0]) tuple(a, b, c) })"),
            "({1, 1}, {1, 2}, {})");
}

// More than elementwise ops: factorials by a loop.
TEST(InterpMap, ComputationWithLoop) {
  EXPECT_EQ(ValueOf(R"(HloModule m
condition { s = (s32[], s32[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  zero = s32[] constant(0)
  ROOT p = pred[] compare(n, zero), direction=GT }
body { s = (s32[], s32[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  f = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  m = s32[] subtract(n, one)
  g = s32[] multiply(f, n)
  ROOT t = (s32[], s32[]) tuple(m, g) }
factorial { n = s32[] parameter(0)
  one = s32[] constant(1)
  t = (s32[], s32[]) tuple(n, one)
  w = (s32[], s32[]) while(t), condition=condition, body=body
  ROOT r = s32[] get-tuple-element(w), index=1 }
ENTRY e { x = s32[5] constant({0, 1, 2, 3, 5})
  ROOT r = s32[5] map(x), dimensions={0}, to_apply=factorial })"),
            "{1, 1, 2, 6, 120}");
}

TEST(InterpControl, OptBarrier) {
  EXPECT_EQ(ValueOf(R"(HloModule m
ENTRY e { x = s32[2] constant({1, 2})
  y = (f32[]) tuple(f32[] constant(3))
  t = (s32[2], (f32[])) tuple(x, y)
  b = (s32[2], (f32[])) opt-barrier(t)
  c = s32[2] opt-barrier(x)
  e = (f32[]) get-tuple-element(b), index=1
  ROOT r = ((s32[2], (f32[])), s32[2], (f32[])) tuple(b, c, e) })"),
            "(({1, 2}, (3)), {1, 2}, (3))");
}

}  // namespace
}  // namespace kiln

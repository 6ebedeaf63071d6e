// Compiled ops on bits and positions against the evaluator.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/labels.h"

namespace kiln {
namespace {

using testing::Check;
using testing::Load;

TEST(StructuralOps, Reverse) {
  Check(R"(HloModule m
ENTRY e { x = f32[5,70] parameter(0)
  y = u8[33] parameter(1)
  z = f32[3,0] parameter(2)
  a = f32[5,70] reverse(x), dimensions={1}
  b = f32[5,70] reverse(x), dimensions={0,1}
  n = f32[5,70] negate(b)
  t = f32[70,5] transpose(a), dimensions={1,0}
  r = f32[70,5] reverse(t), dimensions={1}
  c = u8[33] reverse(y), dimensions={0}
  d = f32[3,0] reverse(z), dimensions={0,1}
  ROOT o = (f32[5,70], f32[5,70], f32[70,5], u8[33], f32[3,0]) tuple(a, n, r, c, d) })");
}

TEST(StructuralOps, BitcastConvert) {
  Check(R"(HloModule m
ENTRY e { x = f32[40,3] parameter(0)
  y = f64[37] parameter(1)
  u = u8[21,4] parameter(2)
  p = pred[5,8] parameter(3)
  xt = f32[3,40] transpose(x), dimensions={1,0}
  a = s32[3,40] bitcast-convert(xt)
  one = s32[] constant(1)
  ones = s32[3,40] broadcast(one), dimensions={}
  b = s32[3,40] xor(a, ones)
  c = f32[3,40] bitcast-convert(b)
  d = s64[37] bitcast-convert(y)
  e = s32[21] bitcast-convert(u)
  n = s32[21] negate(e)
  f = u8[21,4] bitcast-convert(n)
  g = f32[40,3] negate(x)
  h = u8[40,3,4] bitcast-convert(g)
  i = u8[5] bitcast-convert(p)
  j = pred[21,4,8] bitcast-convert(u)
  ROOT o = (f32[3,40], s64[37], u8[21,4], u8[40,3,4], u8[5], pred[21,4,8]) tuple(c, d, f, h, i, j) })");
}

// Memory under another type: nothing is moved.
TEST(StructuralOps, BitcastConvertIsFree) {
  auto module = ir::ParseOrDie(R"(HloModule m
ENTRY e { x = f32[64,16] parameter(0)
  y = f32[16,16] parameter(1)
  d = f32[64,16] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT b = u8[64,16,4] bitcast-convert(d) })");
  auto loaded = Load(*module, false);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(program::CountKernels(loaded->artefact->program.steps), 1)
      << loaded->artefact->program.ToString();
}

// Without mantissa a NaN becomes an infinity of its sign; that of inf - inf has the sign that the
// machine gives it.
TEST(StructuralOps, ReducePrecision) {
  for (auto [exponent, mantissa] : {std::pair(5, 10), {8, 7}, {8, 23}, {4, 3}, {1, 0}, {11, 20}}) {
    std::string attributes = Cat(", exponent_bits=", exponent, ", mantissa_bits=", mantissa);
    Check(Cat(R"(HloModule m
ENTRY e { x = f32[101] parameter(0)
  y = f64[101] parameter(1)
  k = f32[] constant(1e37)
  kb = f32[101] broadcast(k), dimensions={}
  z = f32[101] multiply(x, kb)
  w = f32[101] divide(x, kb)
  q = f32[101] multiply(z, z)
  n = f32[101] subtract(q, q)
  s = f32[101] abs(n)
  a = f32[101] reduce-precision(x))",
              attributes, R"(
  b = f64[101] reduce-precision(y))",
              attributes, R"(
  c = f32[101] reduce-precision(z))",
              attributes, R"(
  d = f32[101] reduce-precision(w))",
              attributes, R"(
  e = f32[101] reduce-precision(s))",
              attributes, R"(
  ROOT o = (f32[101], f64[101], f32[101], f32[101], f32[101]) tuple(a, b, c, d, e) })"),
          0, 0);
  }
}

TEST(StructuralOps, GetDimensionSize) {
  Check(R"(HloModule m
ENTRY e { x = f32[5,7] parameter(0)
  n = s32[] get-dimension-size(x), dimensions={1}
  ROOT b = s32[3] broadcast(n), dimensions={} })");
}

TEST(StructuralOps, Map) {
  Check(R"(HloModule m
inner { a = f32[] parameter(0)
  ROOT r = f32[] tanh(a) }
f { a = f32[] parameter(0)
  b = f32[] parameter(1)
  k = f32[] constant(0.5)
  m = f32[] multiply(a, k)
  t = f32[] call(m), to_apply=inner
  p = pred[] compare(a, b), direction=LT
  ROOT r = f32[] select(p, t, b) }
g { ROOT a = f32[] parameter(0) }
ENTRY e { x = f32[19,23] parameter(0)
  y = f32[19,23] parameter(1)
  m = f32[19,23] map(x, y), dimensions={0,1}, to_apply=f
  i = f32[19,23] map(m), dimensions={0,1}, to_apply=g
  ROOT n = f32[19,23] negate(i) })");
}

// A barrier of arrays and of tuples, among results, in loops, and twice of one value.
TEST(StructuralOps, OptBarrier) {
  Check(R"(HloModule m
cond { s = (s32[], f32[9]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT p = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[9]) parameter(0)
  b = (s32[], f32[9]) opt-barrier(s)
  i = s32[] get-tuple-element(b), index=0
  a = f32[9] get-tuple-element(b), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  c = f32[9] multiply(a, a)
  ROOT t = (s32[], f32[9]) tuple(j, c) }
ENTRY e { x = f32[9] parameter(0)
  y = f32[9] parameter(1)
  d = f32[9] add(x, y)
  t = (f32[9], (f32[9], f32[9])) tuple(d, (f32[9], f32[9]) tuple(x, d))
  b = (f32[9], (f32[9], f32[9])) opt-barrier(t)
  b0 = f32[9] get-tuple-element(b), index=0
  b1 = (f32[9], f32[9]) get-tuple-element(b), index=1
  n = f32[9] negate(b0)
  m = f32[9] multiply(d, n)
  c = f32[9] opt-barrier(m)
  h = f32[9] tanh(c)
  zero = s32[] constant(0)
  w = (s32[], f32[9]) while((s32[], f32[9]) tuple(zero, h)), condition=cond, body=body
  ROOT o = (f32[9], (f32[9], f32[9]), (s32[], f32[9]), f32[9]) tuple(m, b1, w, d) })");
}

// What one name of a value still needs may not be overwritten under another.
TEST(StructuralOps, AliasesKeepMemoryAlive) {
  Check(R"(HloModule m
ENTRY e { x = f32[64] parameter(0)
  a = f32[64] exponential(x)
  t = (f32[64], f32[64]) tuple(a, x)
  g = f32[64] get-tuple-element(t), index=0
  n = f32[64] negate(g)
  b = f32[64] opt-barrier(n)
  s = f32[64] tanh(b)
  ROOT z = f32[64] add(a, s) })");
}

KILN_LABEL(gpu_sample, "StructuralOps");

}  // namespace
}  // namespace kiln

// Fusions that a program has when it comes: they mean what calls mean. Those that are no kernel as
// they are, by what is in them, what they take or what they give, are taken apart.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "support/compiled.h"

namespace kiln {
namespace {

using testing::Check;

constexpr char kAdd[] = R"(HloModule m
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y) }
)";

TEST(GivenFusions, OfResultsOfSeveralSizes) {
  for (std::string_view kind : {"kLoop", "kInput", "kOutput", "kCustom"}) {
    Check(Cat(kAdd, R"(f { a = f32[6,7] parameter(0)
  b = f32[5] parameter(1)
  z = f32[] constant(0)
  n = f32[6,7] negate(a)
  r = f32[7] reduce(n, z), dimensions={0}, to_apply=add
  c = f32[6] reduce(n, z), dimensions={1}, to_apply=add
  e = f32[5] exponential(b)
  d = f32[7,7] dot(a, n), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT t = (f32[5], f32[6,7], f32[7], f32[6], f32[], f32[5], f32[7,7], f32[5]) tuple(e, n, r, c, z, b, d, e) }
ENTRY main { a = f32[6,7] parameter(0)
  b = f32[5] parameter(1)
  ROOT f = (f32[5], f32[6,7], f32[7], f32[6], f32[], f32[5], f32[7,7], f32[5]) fusion(a, b), kind=)",
              kind, ", calls=f }"));
  }
}

TEST(GivenFusions, OfTuples) {
  Check(R"(HloModule m
pair { p = (f32[5], (s32[], f32[5])) parameter(0)
  a = f32[5] get-tuple-element(p), index=0
  q = (s32[], f32[5]) get-tuple-element(p), index=1
  b = f32[5] get-tuple-element(q), index=1
  s = f32[5] add(a, b)
  u = (f32[5]) tuple(s)
  ROOT t = ((s32[], f32[5]), f32[5], (f32[5])) tuple(q, s, u) }
none { ROOT t = () tuple() }
one { a = f32[5] parameter(0)
  n = f32[5] negate(a)
  ROOT t = (f32[5]) tuple(n) }
same { ROOT a = f32[5] parameter(0) }
ENTRY e { x = f32[5] parameter(0)
  k = s32[] parameter(1)
  i = (s32[], f32[5]) tuple(k, x)
  p = (f32[5], (s32[], f32[5])) tuple(x, i)
  f = ((s32[], f32[5]), f32[5], (f32[5])) fusion(p), kind=kLoop, calls=pair
  n = () fusion(), kind=kLoop, calls=none
  o = (f32[5]) fusion(x), kind=kInput, calls=one
  y = f32[5] get-tuple-element(o), index=0
  z = f32[5] fusion(y), kind=kLoop, calls=same
  ROOT r = (((s32[], f32[5]), f32[5], (f32[5])), (), f32[5], (f32[5])) tuple(f, n, z, o) })");
}

// Ops that have several results, as the root.
TEST(GivenFusions, OfSeveralResultsAtOnce) {
  Check(R"(HloModule m
less { x = f32[] parameter(0)
  y = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT l = pred[] compare(x, y), direction=LT }
larger { v = f32[] parameter(0)
  i = s32[] parameter(1)
  w = f32[] parameter(2)
  j = s32[] parameter(3)
  p = pred[] compare(v, w), direction=GE
  x = f32[] select(p, v, w)
  k = s32[] select(p, i, j)
  ROOT t = (f32[], s32[]) tuple(x, k) }
sorted { a = f32[7,9] parameter(0)
  i = s32[7,9] iota(), iota_dimension=1
  ROOT s = (f32[7,9], s32[7,9]) sort(a, i), dimensions={1}, to_apply=less }
largest { a = f32[7,9] parameter(0)
  i = s32[7,9] iota(), iota_dimension=1
  l = f32[] constant(-inf)
  z = s32[] constant(0)
  ROOT r = (f32[7], s32[7]) reduce(a, i, l, z), dimensions={1}, to_apply=larger }
best { a = f32[7,9] parameter(0)
  ROOT t = (f32[7,3], s32[7,3]) topk(a), k=3, largest=true }
norm { a = f32[7,9] parameter(0)
  s = f32[9] parameter(1)
  ROOT n = (f32[7,9], f32[9], f32[9]) batch-norm-training(a, s, s), epsilon=0.5, feature_index=1 }
ENTRY e { a = f32[7,9] parameter(0)
  s = f32[9] parameter(1)
  f = (f32[7,9], s32[7,9]) fusion(a), kind=kInput, calls=sorted
  g = (f32[7], s32[7]) fusion(a), kind=kInput, calls=largest
  h = (f32[7,3], s32[7,3]) fusion(a), kind=kInput, calls=best
  k = (f32[7,9], f32[9], f32[9]) fusion(a, s), kind=kLoop, calls=norm
  x = f32[7] get-tuple-element(g), index=0
  y = f32[7] negate(x)
  ROOT r = ((f32[7,9], s32[7,9]), (f32[7], s32[7]), (f32[7,3], s32[7,3]), (f32[7,9], f32[9], f32[9]), f32[7]) tuple(f, g, h, k, y) })");
}

TEST(GivenFusions, OfFusions) {
  Check(Cat(kAdd, R"(rows { a = f32[9,12] parameter(0)
  z = f32[] constant(0)
  r = f32[9] reduce(a, z), dimensions={1}, to_apply=add
  ROOT t = (f32[9], f32[9,12], f32[9]) tuple(r, a, r) }
twice { a = f32[9,12] parameter(0)
  f = (f32[9], f32[9,12], f32[9]) fusion(a), kind=kInput, calls=rows
  n = f32[9,12] negate(a)
  g = (f32[9], f32[9,12], f32[9]) fusion(n), kind=kInput, calls=rows
  s = f32[9] get-tuple-element(f), index=2
  t = f32[9] get-tuple-element(g), index=0
  d = f32[9] subtract(s, t)
  ROOT r = (f32[9], (f32[9], f32[9,12], f32[9]), f32[9], f32[9]) tuple(d, g, t, d) }
ENTRY e { a = f32[9,12] parameter(0)
  ROOT f = (f32[9], (f32[9], f32[9,12], f32[9]), f32[9], f32[9]) fusion(a), kind=kLoop, calls=twice })"));
}

TEST(GivenFusions, OfOneComputation) {
  Check(Cat(kAdd, R"(sums { a = f32[9,12] parameter(0)
  z = f32[] constant(0)
  r = f32[9] reduce(a, z), dimensions={1}, to_apply=add
  ROOT t = (f32[9], f32[9]) tuple(r, r) }
ENTRY e { a = f32[9,12] parameter(0)
  f = (f32[9], f32[9]) fusion(a), kind=kInput, calls=sums
  n = f32[9,12] exponential(a)
  g = (f32[9], f32[9]) fusion(n), kind=kInput, calls=sums
  x = f32[9] get-tuple-element(f), index=0
  y = f32[9] get-tuple-element(g), index=1
  s = f32[9] add(x, y)
  ROOT r = ((f32[9], f32[9]), f32[9]) tuple(g, s) })"));
}

// Loops, branches and calls, functions outside generated code, ops that become several, numbers
// that have another form in memory.
TEST(GivenFusions, OfWhatIsNoPartOfAKernel) {
  Check(R"(HloModule m
less { p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  c = s32[] constant(3)
  ROOT l = pred[] compare(i, c), direction=LT }
next { p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  o = s32[] constant(1)
  j = s32[] add(i, o)
  y = f32[4] sine(x)
  ROOT t = (s32[], f32[4]) tuple(j, y) }
f { p = (s32[], f32[4]) parameter(0)
  w = (s32[], f32[4]) while(p), condition=less, body=next
  v = f32[4] get-tuple-element(w), index=1
  ROOT t = (f32[4], (s32[], f32[4]), f32[4]) tuple(v, w, v) }
ENTRY e { i = s32[] parameter(0)
  x = f32[4] parameter(1)
  p = (s32[], f32[4]) tuple(i, x)
  ROOT f = (f32[4], (s32[], f32[4]), f32[4]) fusion(p), kind=kLoop, calls=f })");
  Check(R"(HloModule m
f { a = f32[2,5,5,3] parameter(0)
  k = f32[2,2,3,4] parameter(1)
  c = f32[2,4,4,4] convolution(a, k), window={size=2x2}, dim_labels=b01f_01io->b01f
  ROOT t = (f32[2,4,4,4], f32[2,4,4,4]) tuple(c, c) }
ENTRY e { a = f32[2,5,5,3] parameter(0)
  k = f32[2,2,3,4] parameter(1)
  ROOT f = (f32[2,4,4,4], f32[2,4,4,4]) fusion(a, k), kind=kInput, calls=f })");
  Check(R"(HloModule m
f { a = f32[3,4] parameter(0)
  z = c64[3,4] complex(a, a)
  s = c64[3,4] multiply(z, z)
  i = s4[3,4] convert(a)
  h = f8e5m2[3,4] convert(a)
  j = s4[3,4] add(i, i)
  t = c64[3] parameter(1)
  u = c64[3] fft(t), fft_type=FFT, fft_length={3}
  ROOT r = (c64[3,4], s4[3,4], f8e5m2[3,4], s4[3,4], c64[3,4], c64[3]) tuple(s, j, h, j, s, u) }
ENTRY e { a = f32[3,4] parameter(0)
  t = c64[3] parameter(1)
  ROOT f = (c64[3,4], s4[3,4], f8e5m2[3,4], s4[3,4], c64[3,4], c64[3]) fusion(a, t), kind=kLoop, calls=f })");
}

// Arrays of several numbers are no part of a kernel's code.
TEST(GivenFusions, OfConstants) {
  Check(R"(HloModule m
f { a = f32[3] parameter(0)
  c = f32[3] constant({1, 2, 3})
  s = f32[3] add(a, c)
  z = f32[3] constant({4, 4, 4})
  k = s32[] constant(7)
  ROOT t = (f32[3], f32[3], f32[3], f32[3], s32[], f32[3]) tuple(c, s, c, z, k, z) }
g { ROOT c = s32[2] constant({1, 2}) }
ENTRY e { a = f32[3] parameter(0)
  g = s32[2] fusion(), kind=kLoop, calls=g
  f = (f32[3], f32[3], f32[3], f32[3], s32[], f32[3]) fusion(a), kind=kLoop, calls=f
  ROOT r = ((f32[3], f32[3], f32[3], f32[3], s32[], f32[3]), s32[2]) tuple(f, g) })");
}

// They grow all the same: what is read of them are their elements then, also by the branch that is
// left.
TEST(GivenFusions, AsTheRoot) {
  Check(R"(HloModule m
f { a = f32[6] parameter(0)
  n = f32[6] negate(a)
  ROOT t = (f32[6]) tuple(n) }
one { a = f32[6] parameter(0)
  e = f32[6] exponential(a)
  ROOT f = (f32[6]) fusion(e), kind=kLoop, calls=f }
two { a = f32[6] parameter(0)
  ROOT t = (f32[6]) tuple(a) }
ENTRY e { k = s32[] parameter(0)
  a = f32[6] parameter(1)
  b = f32[6] parameter(2)
  ROOT c = (f32[6]) conditional(k, a, b), branch_computations={one, two} })");
}

}  // namespace
}  // namespace kiln

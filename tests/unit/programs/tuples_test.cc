// Tuples wherever values may be, and branches by number: compiled code against the evaluator.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/labels.h"
#include "support/literal.h"

namespace kiln {
namespace {

using testing::Check;

TEST(Tuples, ParametersAndResults) {
  Check(R"(HloModule m
ENTRY e { p = ((f32[3], (s32[2], ())), f32[3]) parameter(0)
  q = (f32[3]) parameter(1)
  a = (f32[3], (s32[2], ())) get-tuple-element(p), index=0
  b = f32[3] get-tuple-element(p), index=1
  c = f32[3] get-tuple-element(a), index=0
  d = (s32[2], ()) get-tuple-element(a), index=1
  i = s32[2] get-tuple-element(d), index=0
  j = s32[2] negate(i)
  s = f32[3] add(b, c)
  t = (s32[2], (s32[2], ())) tuple(j, d)
  u = ((s32[2], (s32[2], ())), f32[3]) tuple(t, s)
  ROOT r = (((s32[2], (s32[2], ())), f32[3]), (f32[3]), ((f32[3], (s32[2], ())), f32[3])) tuple(u, q, p)
  })");
}

TEST(Tuples, PassedThrough) {
  Check(R"(HloModule m
ENTRY e { ROOT p = ((f32[3], (s32[2], ())), f32[3]) parameter(0) })");
  Check(R"(HloModule m
ENTRY e { p = ((f32[3], (s32[2], ())), f32[3]) parameter(0)
  ROOT a = (f32[3], (s32[2], ())) get-tuple-element(p), index=0 })");
  Check(R"(HloModule m
ENTRY e { x = f32[4] parameter(0)
  k = (s32[], (f32[2])) constant((7, ({1, 2})))
  n = f32[4] negate(x)
  t = (f32[4], f32[4]) tuple(n, n)
  b = (f32[4], f32[4]) opt-barrier(t)
  ROOT r = ((f32[4], f32[4]), (s32[], (f32[2])), f32[4]) tuple(b, k, x) })");
}

TEST(Tuples, StateOfLoops) {
  Check(R"(HloModule m
more { p = ((s32[], f32[5]), (f32[5], ())) parameter(0)
  a = (s32[], f32[5]) get-tuple-element(p), index=0
  n = s32[] get-tuple-element(a), index=0
  five = s32[] constant(5)
  ROOT c = pred[] compare(n, five), direction=LT }
next { p = ((s32[], f32[5]), (f32[5], ())) parameter(0)
  a = (s32[], f32[5]) get-tuple-element(p), index=0
  b = (f32[5], ()) get-tuple-element(p), index=1
  n = s32[] get-tuple-element(a), index=0
  x = f32[5] get-tuple-element(a), index=1
  y = f32[5] get-tuple-element(b), index=0
  e = () get-tuple-element(b), index=1
  one = s32[] constant(1)
  m = s32[] add(n, one)
  t = f32[5] tanh(x)
  s = f32[5] add(t, y)
  u = (s32[], f32[5]) tuple(m, y)
  v = (f32[5], ()) tuple(s, e)
  ROOT r = ((s32[], f32[5]), (f32[5], ())) tuple(u, v) }
ENTRY e { x = f32[5] parameter(0)
  y = f32[5] parameter(1)
  zero = s32[] constant(0)
  e = () tuple()
  a = (s32[], f32[5]) tuple(zero, x)
  b = (f32[5], ()) tuple(y, e)
  s = ((s32[], f32[5]), (f32[5], ())) tuple(a, b)
  ROOT w = ((s32[], f32[5]), (f32[5], ())) while(s), condition=more, body=next })");
}

// A module of four branches over tuples, of which index chooses one.
std::string Branches(std::string_view index) {
  return Cat(R"(HloModule m
first { p = (f32[4], (f32[4], s32[])) parameter(0)
  x = f32[4] get-tuple-element(p), index=0
  q = (f32[4], s32[]) get-tuple-element(p), index=1
  ROOT r = (f32[4], (f32[4], s32[])) tuple(x, q) }
second { p = f32[4] parameter(0)
  n = f32[4] negate(p)
  k = s32[] constant(2)
  t = (f32[4], s32[]) tuple(p, k)
  ROOT r = (f32[4], (f32[4], s32[])) tuple(n, t) }
third { p = () parameter(0)
  ROOT k = (f32[4], (f32[4], s32[])) constant(({1, 2, 3, 4}, ({5, 6, 7, 8}, 9))) }
fourth { p = ((f32[4]), s32[]) parameter(0)
  a = (f32[4]) get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(a), index=0
  i = s32[] get-tuple-element(p), index=1
  e = f32[4] exponential(x)
  t = (f32[4], s32[]) tuple(e, i)
  ROOT r = (f32[4], (f32[4], s32[])) tuple(e, t) }
ENTRY e { x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  i = s32[] parameter(2)
  j = s32[] )",
             index, R"(
  q = (f32[4], s32[]) tuple(y, i)
  a = (f32[4], (f32[4], s32[])) tuple(x, q)
  none = () tuple()
  o = (f32[4]) tuple(y)
  d = ((f32[4]), s32[]) tuple(o, i)
  c = (f32[4], (f32[4], s32[])) conditional(j, a, x, none, d), branch_computations={first, second, third, fourth}
  u = f32[4] get-tuple-element(c), index=0
  v = (f32[4], s32[]) get-tuple-element(c), index=1
  w = f32[4] add(u, y)
  ROOT r = (f32[4], (f32[4], s32[])) tuple(w, v) })");
}

TEST(Branches, ByNumber) {
  for (int index : {-2147483647 - 1, -1, 0, 1, 2, 3, 4, 2147483647}) {
    // Known when it is compiled, and not.
    Check(Branches(Cat("constant(", index, ")")));
    auto module = ir::ParseOrDie(Branches("parameter(3)"));
    std::vector<Literal> arguments = testing::RandomArguments(*module, 5);
    arguments[3].values<int32_t>()[0] = index;
    auto expected = interp::Evaluate(*module, arguments);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    // The last branch is also the one of numbers that no branch has.
    bool last = index < 0 || index > 3;
    arguments[3].values<int32_t>()[0] = last ? 3 : index;
    EXPECT_EQ(*interp::Evaluate(*module, arguments), *expected);
    arguments[3].values<int32_t>()[0] = index;
    for (bool fuse : {true, false}) {
      auto actual = testing::RunCompiled(*module, arguments, fuse);
      ASSERT_TRUE(actual.ok()) << actual.status().ToString();
      EXPECT_EQ(testing::Difference(*expected, *actual, 1e-6, 1e-6), "") << index;
    }
  }
}

TEST(Branches, OfOne) {
  Check(R"(HloModule m
only { p = f32[3] parameter(0)
  ROOT n = f32[3] negate(p) }
ENTRY e { x = f32[3] parameter(0)
  i = s32[] parameter(1)
  ROOT c = f32[3] conditional(i, x), branch_computations={only} })");
}

TEST(Branches, InLoopsAndBranches) {
  Check(R"(HloModule m
up { p = (f32[4], s32[]) parameter(0)
  x = f32[4] get-tuple-element(p), index=0
  i = s32[] get-tuple-element(p), index=1
  y = f32[4] add(x, x)
  ROOT r = (f32[4], s32[]) tuple(y, i) }
same { ROOT p = (f32[4], s32[]) parameter(0) }
down { p = (f32[4], s32[]) parameter(0)
  x = f32[4] get-tuple-element(p), index=0
  i = s32[] get-tuple-element(p), index=1
  y = f32[4] negate(x)
  t = (f32[4], s32[]) tuple(y, i)
  zero = s32[] constant(0)
  q = pred[] compare(i, zero), direction=GT
  ROOT r = (f32[4], s32[]) conditional(q, t, p), branch_computations={up, same} }
more { p = (s32[], (f32[4], s32[])) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  six = s32[] constant(6)
  ROOT c = pred[] compare(n, six), direction=LT }
next { p = (s32[], (f32[4], s32[])) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  s = (f32[4], s32[]) get-tuple-element(p), index=1
  c = (f32[4], s32[]) conditional(n, s, s, s), branch_computations={up, down, same}
  one = s32[] constant(1)
  m = s32[] add(n, one)
  ROOT r = (s32[], (f32[4], s32[])) tuple(m, c) }
ENTRY e { x = f32[4] parameter(0)
  i = s32[] parameter(1)
  minus = s32[] constant(-2)
  s = (f32[4], s32[]) tuple(x, i)
  t = (s32[], (f32[4], s32[])) tuple(minus, s)
  ROOT w = (s32[], (f32[4], s32[])) while(t), condition=more, body=next })");
}

KILN_LABEL(gpu_sample, "Tuples");

}  // namespace
}  // namespace kiln

// Loops of the program in compiled code: what stands in their code, and what stays in its memory.
#include <gtest/gtest.h>

#include <string>

#include "base/strings.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/labels.h"

namespace kiln::testing {
namespace {

// carry = carry + x[i], y[i] = carry * x[i]
std::string Scan(int64_t steps, int64_t width) {
  std::string row = Cat("f32[", width, "]"), all = Cat("f32[", steps, ",", width, "]");
  std::string one = Cat("f32[1,", width, "]");
  std::string state = Cat("(s32[], ", row, ", ", all, ", ", all, ")");
  return Cat(
      "HloModule scan\nbody { t = ", state, R"( parameter(0)
  i = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  zero = s32[] constant(0)
  c = )",
      row, " get-tuple-element(t), index=1\n  ys = ", all,
      " get-tuple-element(t), index=2\n  xs = ", all, " get-tuple-element(t), index=3\n  s = ", one,
      " dynamic-slice(xs, i, zero), dynamic_slice_sizes={1,", width, "}\n  x = ", row,
      " reshape(s)\n  sum = ", row, " add(c, x)\n  y = ", row, " multiply(c, x)\n  u = ", one,
      " reshape(y)\n  next_ys = ", all, " dynamic-update-slice(ys, u, i, zero)\n  ROOT r = ", state,
      " tuple(next, sum, next_ys, xs) }\ncondition { t = ", state,
      " parameter(0)\n  i = s32[] get-tuple-element(t), index=0\n  n = s32[] constant(", steps,
      ")\n  ROOT p = pred[] compare(i, n), direction=LT }\nENTRY e { xs = ", all,
      " parameter(0)\n  i = s32[] constant(0)\n  one = f32[] constant(1)\n  c = ", row,
      " broadcast(one), dimensions={}\n  zero = f32[] constant(0)\n  ys = ", all,
      " broadcast(zero), dimensions={}\n  init = ", state, " tuple(i, c, ys, xs)\n  w = ", state,
      " while(init), condition=condition, body=body\n  last = ", row,
      " get-tuple-element(w), index=1\n  out = ", all,
      " get-tuple-element(w), index=2\n  ROOT r = (", row, ", ", all, ") tuple(last, out) }\n");
}

const program::While* LoopOf(const program::Steps& steps) {
  for (const program::Step& step : steps) {
    if (const auto* loop = std::get_if<program::While>(&step.what)) return loop;
  }
  return nullptr;
}

int CountInlined(const program::Steps& steps) {
  int count = 0;
  for (const program::Step& step : steps) {
    const auto* launch = std::get_if<program::Launch>(&step.what);
    count += launch && launch->inlined;
  }
  return count;
}

TEST(Loops, SmallBodiesCallNothingAndCopyNothing) {
  for (int64_t width : {1, 2, 3, 7, 15, 16, 31, 40}) {
    std::string text = Scan(20, width);
    Check(text);
    auto loaded = Load(*ir::ParseOrDie(text), true);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    const program::Program& program = loaded->artefact->program;
    const program::While* loop = LoopOf(program.steps);
    ASSERT_NE(loop, nullptr);
    if (IsTestOfGpu()) continue;
    EXPECT_TRUE(loop->fused);
    EXPECT_EQ(CountInlined(loop->body), static_cast<int>(loop->body.size())) << program.ToString();
    EXPECT_EQ(CountInlined(loop->condition), static_cast<int>(loop->condition.size()));
  }
}

TEST(Loops, LargeBodiesAreCalled) {
  auto loaded = Load(*ir::ParseOrDie(Scan(3, 100000)), true);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  const program::Program& program = loaded->artefact->program;
  const program::While* loop = LoopOf(program.steps);
  ASSERT_NE(loop, nullptr);
  EXPECT_EQ(CountInlined(loop->condition), IsTestOfGpu() ? 0 : 1) << program.ToString();
  EXPECT_LT(CountInlined(loop->body), static_cast<int>(loop->body.size())) << program.ToString();
  Check(Scan(3, 100000));
}

// An array that the loop keeps and another that begins with the same values and changes: one memory
// will not do, whoever made it and whoever reads it afterwards.
TEST(Loops, KeptArraysThatAreChangedElsewhere) {
  constexpr char kLoop[] = R"(
body { t = (s32[], f32[5], f32[5]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  a = f32[5] get-tuple-element(t), index=1
  b = f32[5] get-tuple-element(t), index=2
  c = f32[5] add(a, b)
  ROOT r = (s32[], f32[5], f32[5]) tuple(n, c, b) }
condition { t = (s32[], f32[5], f32[5]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(4)
  ROOT p = pred[] compare(i, n), direction=LT }
)";
  for (const char* start : {"x", "y"}) {
    for (const char* after : {"x", "y", "k"}) {
      Check(Cat("HloModule m\n", kLoop, R"(
ENTRY e { x = f32[5] parameter(0)
  y = f32[5] negate(x)
  i = s32[] constant(0)
  init = (s32[], f32[5], f32[5]) tuple(i, )",
                start, ", ", start, R"()
  w = (s32[], f32[5], f32[5]) while(init), condition=condition, body=body
  s = f32[5] get-tuple-element(w), index=1
  k = f32[5] get-tuple-element(w), index=2
  o = f32[5] multiply(s, )",
                after, R"()
  ROOT r = (f32[5], f32[5], f32[5]) tuple(o, s, k) })"));
    }
  }
}

// The same inside another loop, whose state the inner one keeps or changes.
TEST(Loops, KeptArraysOfLoopsInLoops) {
  for (const char* results : {"s, k", "k, s", "s, s", "k, k", "s, y", "y, k"}) {
    Check(Cat(R"(HloModule m
inner { t = (s32[], f32[5], f32[5]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  a = f32[5] get-tuple-element(t), index=1
  b = f32[5] get-tuple-element(t), index=2
  half = f32[] constant(0.25)
  h = f32[5] broadcast(half), dimensions={}
  m = f32[5] multiply(a, h)
  c = f32[5] add(m, b)
  ROOT r = (s32[], f32[5], f32[5]) tuple(n, c, b) }
less { t = (s32[], f32[5], f32[5]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(3)
  ROOT p = pred[] compare(i, n), direction=LT }
outer { t = (s32[], f32[5], f32[5]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  x = f32[5] get-tuple-element(t), index=1
  y = f32[5] get-tuple-element(t), index=2
  zero = s32[] constant(0)
  init = (s32[], f32[5], f32[5]) tuple(zero, x, x)
  w = (s32[], f32[5], f32[5]) while(init), condition=less, body=inner
  s = f32[5] get-tuple-element(w), index=1
  k = f32[5] get-tuple-element(w), index=2
  ROOT r = (s32[], f32[5], f32[5]) tuple(n, )",
              results, R"() }
ENTRY e { x = f32[5] parameter(0)
  y = f32[5] parameter(1)
  i = s32[] constant(0)
  init = (s32[], f32[5], f32[5]) tuple(i, x, y)
  ROOT w = (s32[], f32[5], f32[5]) while(init), condition=less, body=outer })"));
  }
}

TEST(Loops, KeptArraysAreNotCopied) {
  auto loaded = Load(*ir::ParseOrDie(Scan(2000, 3)), true);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_LE(loaded->artefact->program.arena_bytes, 256);
}

TEST(Loops, FusedLoopsStopWhenAsked) {
  auto loaded = Load(*ir::ParseOrDie(R"(HloModule m
body { i = u64[] parameter(0)
  one = u64[] constant(1)
  ROOT n = u64[] add(i, one) }
condition { i = u64[] parameter(0)
  n = u64[] constant(18446744073709551615)
  ROOT p = pred[] compare(i, n), direction=LT }
ENTRY e { i = u64[] parameter(0)
  ROOT w = u64[] while(i), condition=condition, body=body })"),
                     true);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(LoopOf(loaded->artefact->program.steps)->fused, !IsTestOfGpu());
  Execution run(*loaded->artefact);
  run.SetArguments({Literal::Scalar(ElementType::kU64, uint64_t{0})});
  int32_t cancel = 1;
  runtime::RunOptions options;
  options.cancel = &cancel;
  Status status = loaded->executable->Run(run.arguments(), run.results(), options);
  EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
}

KILN_LABEL(gpu_sample, "Loops");

}  // namespace
}  // namespace kiln::testing

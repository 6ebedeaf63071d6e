// The evaluator's tuples, control flow, limits and environment.
#include <gtest/gtest.h>

#include <cfenv>

#include "support/interp.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kiln {
namespace {

using testing::ValueOf;

TEST(InterpControl, TuplesNest) {
  EXPECT_EQ(ValueOf(R"(HloModule m
ENTRY e {
  a = s32[] constant(1)
  b = f32[2] constant({2, 3})
  inner = (f32[2], s32[]) tuple(b, a)
  empty = () tuple()
  outer = (s32[], (f32[2], s32[]), ()) tuple(a, inner, empty)
  back = (f32[2], s32[]) get-tuple-element(outer), index=1
  c = s32[] get-tuple-element(back), index=1
  ROOT r = (s32[], (f32[2], s32[]), (f32[2], s32[]), ()) tuple(c, back, back, empty)
})"),
            "(1, ({2, 3}, 1), ({2, 3}, 1), ())");
}

TEST(InterpControl, TupleArgumentsAndConstants) {
  Literal argument = Literal::Tuple(
      {Literal::ScalarOf(ElementType::kS32, 5), Literal::ScalarOf(ElementType::kF32, 2.5)});
  EXPECT_EQ(ValueOf(R"(HloModule m
ENTRY e {
  p = (s32[], f32[]) parameter(0)
  k = (s32[], f32[]) constant((7, 1.5))
  x = s32[] get-tuple-element(p), index=0
  y = f32[] get-tuple-element(k), index=1
  ROOT r = ((s32[], f32[]), s32[], f32[]) tuple(p, x, y)
})",
                    {argument}),
            "((5, 2.5), 5, 1.5)");
  EXPECT_EQ(argument.ToString(), "(5, 2.5)") << "the argument was changed";
}

TEST(InterpControl, WhileThatNeverRuns) {
  EXPECT_EQ(ValueOf(R"(HloModule m
never {
  p = s32[3] parameter(0)
  ROOT c = pred[] constant(false)
}
body {
  p = s32[3] parameter(0)
  ROOT q = s32[3] negate(p)
}
ENTRY e {
  x = s32[3] constant({1, 2, 3})
  ROOT w = s32[3] while(x), condition=never, body=body
})"),
            "{1, 2, 3}");
}

constexpr std::string_view kFactorial = R"(HloModule m
cond {
  p = (s64[], s64[]) parameter(0)
  n = s64[] get-tuple-element(p), index=0
  one = s64[] constant(1)
  ROOT c = pred[] compare(n, one), direction=GT
}
body {
  p = (s64[], s64[]) parameter(0)
  n = s64[] get-tuple-element(p), index=0
  f = s64[] get-tuple-element(p), index=1
  one = s64[] constant(1)
  less = s64[] subtract(n, one)
  more = s64[] multiply(f, n)
  ROOT r = (s64[], s64[]) tuple(less, more)
}
ENTRY e {
  n = s64[] parameter(0)
  one = s64[] constant(1)
  t = (s64[], s64[]) tuple(n, one)
  w = (s64[], s64[]) while(t), condition=cond, body=body
  ROOT r = s64[] get-tuple-element(w), index=1
})";

TEST(InterpControl, WhileCounts) {
  EXPECT_EQ(ValueOf(kFactorial, {Literal::ScalarOf(ElementType::kS64, 20)}), "2432902008176640000");
  EXPECT_EQ(ValueOf(kFactorial, {Literal::ScalarOf(ElementType::kS64, 0)}), "1");
}

TEST(InterpControl, EndlessLoopsStop) {
  EXPECT_EQ(ValueOf(R"(HloModule m
always {
  p = s32[] parameter(0)
  ROOT c = pred[] constant(true)
}
body {
  p = s32[] parameter(0)
  ROOT q = s32[] negate(p)
}
ENTRY e {
  x = s32[] constant(1)
  ROOT w = s32[] while(x), condition=always, body=body
})",
                    {}, {.max_work = 100000}),
            "DEADLINE_EXCEEDED: evaluation takes more work than 100000");
}

// What a loop's body makes of constants alone is not made in each turn: here a sum of squares, in a
// computation that the body calls. What is too large to be kept is made again, of what is kept.
std::string LoopOfConstants(int64_t turns) {
  return Cat(R"(HloModule m
sum {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b)
}
more {
  x = s32[] parameter(0)
  i = s32[1000] iota(), iota_dimension=0
  square = s32[1000] multiply(i, i)
  zero = s32[] constant(0)
  squares = s32[] reduce(square, zero), dimensions={0}, to_apply=sum
  ROOT r = s32[] add(squares, x)
}
condition {
  p = (s32[], s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant()",
             turns, R"()
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = s32[] get-tuple-element(p), index=1
  y = s32[] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  z = s32[] call(x), to_apply=more
  two = s32[] add(one, one)
  large = s32[20000] broadcast(two), dimensions={}
  last = s32[1] dynamic-slice(large, i), dynamic_slice_sizes={1}
  four = s32[] reshape(last)
  w = s32[] multiply(y, four)
  ROOT t = (s32[], s32[], s32[]) tuple(j, z, w)
}
ENTRY e {
  z = s32[] constant(0)
  o = s32[] constant(1)
  t = (s32[], s32[], s32[]) tuple(z, z, o)
  ROOT w = (s32[], s32[], s32[]) while(t), condition=condition, body=body
})");
}

TEST(InterpControl, LoopsKeepWhatConstantsMake) {
  auto work = [](int64_t turns, const std::string& value) {
    int64_t done = 0;
    EXPECT_EQ(ValueOf(LoopOfConstants(turns), {}, {.work_done = &done}), value);
    return done;
  };
  work(0, "(0, 0, 1)");
  work(1, "(1, 332833500, 2)");
  work(2, "(2, 665667000, 4)");
  // Sums wrap.
  const int64_t few = work(10, "(10, -966632296, 1024)");
  const int64_t many = work(20, "(20, -1933264592, 1048576)");
  // The sum of 1000 takes no less than 3000; the large array is made in each turn.
  EXPECT_LT(many - few, 10 * (20000 + 2500));
}

TEST(InterpControl, ConditionalByPred) {
  constexpr std::string_view text = R"(HloModule m
yes {
  p = f32[] parameter(0)
  ROOT r = f32[] negate(p)
}
no {
  p = (f32[], s32[]) parameter(0)
  ROOT r = f32[] get-tuple-element(p), index=0
}
ENTRY e {
  which = pred[] parameter(0)
  a = f32[] constant(1)
  b = f32[] constant(2)
  k = s32[] constant(3)
  t = (f32[], s32[]) tuple(b, k)
  ROOT c = f32[] conditional(which, a, t), branch_computations={yes, no}
})";
  EXPECT_EQ(ValueOf(text, {Literal::Scalar(ElementType::kPred, true)}), "-1");
  EXPECT_EQ(ValueOf(text, {Literal::Scalar(ElementType::kPred, false)}), "2");
}

TEST(InterpControl, ConditionalByIndex) {
  constexpr std::string_view text = R"(HloModule m
first {
  p = s32[] parameter(0)
  ROOT r = s32[] constant(10)
}
second {
  p = s32[] parameter(0)
  ROOT r = s32[] constant(20)
}
third {
  p = s32[] parameter(0)
  ROOT r = s32[] copy(p)
}
ENTRY e {
  which = s32[] parameter(0)
  ROOT c = s32[] conditional(which, which, which, which), branch_computations={first, second, third}
})";
  auto with = [&](int32_t which) {
    return ValueOf(text, {Literal::Scalar(ElementType::kS32, which)});
  };
  EXPECT_EQ(with(0), "10");
  EXPECT_EQ(with(1), "20");
  EXPECT_EQ(with(2), "2");
  // The last branch serves every number that none has.
  EXPECT_EQ(with(3), "3");
  EXPECT_EQ(with(-7), "-7");
}

TEST(InterpControl, CallAndFusion) {
  EXPECT_EQ(ValueOf(R"(HloModule m
twice {
  p = s32[2] parameter(0)
  ROOT r = s32[2] add(p, p)
}
fused {
  a = s32[2] parameter(0)
  b = s32[2] parameter(1)
  d = s32[2] subtract(a, b)
  m = s32[2] multiply(a, b)
  ROOT t = (s32[2], s32[2]) tuple(d, m)
}
ENTRY e {
  x = s32[2] constant({5, 6})
  c = s32[2] call(x), to_apply=twice
  ROOT f = (s32[2], s32[2]) fusion(c, x), kind=kLoop, calls=fused
})"),
            "({5, 6}, {50, 72})");
}

TEST(InterpControl, ArgumentsMustFit) {
  Literal wrong(Shape(ElementType::kS64, {1}));
  EXPECT_EQ(ValueOf(kFactorial), "INVALID_ARGUMENT: 'e' takes 1 arguments; 0 were given");
  EXPECT_EQ(ValueOf(kFactorial, {wrong}),
            "INVALID_ARGUMENT: argument 0 of 'e' has shape s64[1]; s64[] is expected");
}

TEST(InterpControl, InstructionsThatTheRootDoesNotNeedAreSkipped) {
  EXPECT_EQ(ValueOf(R"(HloModule m
ENTRY e {
  i = f32[<=3] iota(), iota_dimension=0
  n = f32[<=3] negate(i)
  ROOT r = () tuple()
})"),
            "()");
}

TEST(InterpControl, LongChainsNeedNoDeepStack) {
  ir::Module module("chain");
  ir::Computation* c = module.AddComputation("e");
  module.set_entry(c);
  Shape shape = Shape::Scalar(ElementType::kS32);
  ir::Instruction* last = c->Create({.opcode = Opcode::kParameter,
                                     .attributes = {{Attr::kParameterNumber, int64_t{0}}},
                                     .shape = shape});
  ir::Instruction* step = last;
  for (int k = 0; k < 200000; ++k) {
    last = c->Create({.opcode = Opcode::kAdd, .operands = {last, step}, .shape = shape});
  }
  c->set_root(last);
  auto result =
      interp::Evaluate(module, std::vector<Literal>{Literal::ScalarOf(ElementType::kS32, 3)});
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->ToString(), "600003");
}

TEST(InterpControl, TuplesAreNotCopied) {
  // 64 names for one array of 64 MB: copies would take 4 GB.
  std::string text = "HloModule m\nENTRY e {\n  x = f32[16777216] iota(), iota_dimension=0\n";
  text += "  t0 = (f32[16777216]) tuple(x)\n";
  for (int k = 1; k < 64; ++k) {
    text += Cat("  g", k, " = f32[16777216] get-tuple-element(t", k - 1, "), index=0\n");
    text += Cat("  t", k, " = (f32[16777216]) tuple(g", k, ")\n");
  }
  text +=
      R"(  y = f32[16777216] get-tuple-element(t63), index=0
  ROOT s = f32[1] slice(y), slice={[16777215:16777216]}
}
)";
  EXPECT_EQ(ValueOf(text), "{16777215}");
}

TEST(InterpEnvironment, TheCallersModeDoesNotMatterAndIsKept) {
  constexpr std::string_view text = R"(HloModule m
ENTRY e {
  p = f32[3] parameter(0)
  q = f32[3] constant({3, 1, 0.5})
  d = f32[3] divide(p, q)
  ROOT r = f32[3] round-nearest-even(d)
})";
  Literal argument =
      Literal::Array<float>(Shape(ElementType::kF32, {3}), std::vector<float>{7.5f, 1e-45f, 0.75f});
  auto module = ir::ParseOrDie(text);
  // Functions of f64 go by way of long double, which has a rounding mode of its own on x86.
  auto thirds = ir::ParseOrDie(R"(HloModule m
ENTRY e {
  x = f64[] constant(9)
  ROOT r = f64[] rsqrt(x)
})");
  const ir::Instruction* divide = ir::FindInstruction(*module, "d");
  const ir::Instruction* q = ir::FindInstruction(*module, "q");
  const Literal* operands[] = {&argument, &q->literal()};

  int mode = std::fegetround();
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
#if defined(__x86_64__)
  unsigned control = _mm_getcsr();
  _mm_setcsr(control | 0x8040);  // flush to zero
#endif
  auto whole = interp::Evaluate(*module, std::vector<Literal>{argument});
  auto third = interp::Evaluate(*thirds, {});
  auto one = interp::EvaluateInstruction(*divide, operands);
  int mode_after = std::fegetround();
#if defined(__x86_64__)
  unsigned control_after = _mm_getcsr();
  _mm_setcsr(control);
  // Status flags may be raised; what controls arithmetic is as it was.
  EXPECT_EQ(control_after & 0xffc0, (control | 0x8040) & 0xffc0);
#endif
  std::fesetround(mode);
  EXPECT_EQ(mode_after, FE_UPWARD);
  ASSERT_TRUE(whole.ok() && one.ok() && third.ok());
  EXPECT_EQ(whole->ToString(), "{2, 0, 2}");
  EXPECT_EQ(one->ToString(), "{2.5, 1e-45, 1.5}");
  EXPECT_EQ(third->ToString(), "0.3333333333333333");
}

}  // namespace
}  // namespace kiln

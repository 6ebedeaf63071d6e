// Results of which several are one value: in fusions, at the entry, in loops and branches, in
// donated memory. Memory that a run is given is full of bytes that no result has, so that what
// nobody writes is seen.
#include <gtest/gtest.h>

#include <cstring>

#include "base/strings.h"
#include "compiler/written.h"
#include "interp/interpreter.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/labels.h"
#include "support/literal.h"

namespace kiln {
namespace {

using testing::Check;
using testing::Execution;

constexpr char kAdd[] = R"(
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y) }
)";

// A program of one fusion over f32[48,20], whose body makes `results`.
std::string Fusion(std::string_view body, std::string_view shape, std::string_view results) {
  return Cat("HloModule m\n", kAdd, "f { a = f32[48,20] parameter(0)\n  z = f32[] constant(0)\n",
             body, "\n  ROOT out = ", shape, " tuple(", results, ") }\n",
             "ENTRY e { a = f32[48,20] parameter(0)\n  ROOT f = ", shape,
             " fusion(a), kind=kLoop, calls=f }\n");
}

TEST(RepeatedResults, OfAReductionInAFusion) {
  for (std::string_view dimension : {"0", "1"}) {
    std::string to = dimension == "0" ? "f32[20]" : "f32[48]";
    std::string sum =
        Cat("  r = ", to, " reduce(a, z), dimensions={", dimension, "}, to_apply=add\n");
    Check(Fusion(sum, Cat("(", to, ", ", to, ")"), "r, r"));
    Check(Fusion(Cat(sum, "  n = ", to, " negate(r)"), Cat("(", to, ", ", to, ", ", to, ")"),
                 "n, r, n"));
    // Of the size of what is reduced, before and after; and what comes in.
    Check(
        Fusion(Cat(sum, "  b = f32[48,20] broadcast(r), dimensions={", dimension == "0" ? "1" : "0",
                   "}\n  e = f32[48,20] exponential(a)\n", "  d = f32[48,20] subtract(e, b)"),
               Cat("(f32[48,20], ", to, ", f32[48,20], f32[48,20], f32[48,20], ", to, ")"),
               "d, r, d, e, e, r"));
    Check(Fusion(sum, Cat("(f32[48,20], ", to, ", f32[48,20], ", to, ")"), "a, r, a, r"));
  }
}

TEST(RepeatedResults, OfOtherKernels) {
  Check(Fusion("  n = f32[48,20] negate(a)", "(f32[48,20], f32[48,20], f32[48,20])", "n, a, n"));
  Check(Fusion(R"(  d = f32[48,48] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  n = f32[48,48] negate(d))",
               "(f32[48,48], f32[48,48], f32[48,48], f32[48,48])", "n, d, d, n"));
  Check(
      Fusion(R"(  w = f32[48,20] reduce-window(a, z), window={size=1x20 pad=0_0x19_0}, to_apply=add
  n = f32[48,20] negate(w))",
             "(f32[48,20], f32[48,20], f32[48,20], f32[48,20])", "w, n, w, n"));
  Check(Fusion("  w = f32[46,18] reduce-window(a, z), window={size=3x3}, to_apply=add",
               "(f32[46,18], f32[46,18])", "w, w"));
  Check(Fusion(R"(  s = f32[24,20] slice(a), slice={[0:48:2], [0:20]}
  t = f32[20,24] transpose(s), dimensions={1,0})",
               "(f32[20,24], f32[20,24])", "t, t"));
}

TEST(RepeatedResults, OfWhatIsNoSingleKernel) {
  Check(R"(HloModule m
less { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT l = pred[] compare(x, y), direction=LT }
f { a = f32[7,9] parameter(0)
  s = f32[7,9] sort(a), dimensions={1}, to_apply=less
  ROOT t = (f32[7,9], f32[7,9]) tuple(s, s) }
ENTRY e { a = f32[7,9] parameter(0)
  s = f32[7,9] sort(a), dimensions={1}, to_apply=less
  t = f32[7,9] sort(a), dimensions={1}, to_apply=less
  ROOT r = (f32[7,9], f32[7,9], f32[7,9]) tuple(s, t, s) })");
}

// The two are made one inside of the fusions, or after these are.
TEST(RepeatedResults, MadeOneByTheCompiler) {
  Check(Cat("HloModule m\n", kAdd, R"(
f { a = f32[64,30] parameter(0)
  b = f32[64,30] parameter(1)
  m = f32[64,30] multiply(a, b)
  z = f32[] constant(0)
  r = f32[64] reduce(m, z), dimensions={1}, to_apply=add
  ROOT s = f32[64] sqrt(r) }
g { a = f32[64,30] parameter(0)
  b = f32[64,30] parameter(1)
  m = f32[64,30] multiply(b, a)
  z = f32[] constant(0)
  r = f32[64] reduce(m, z), dimensions={1}, to_apply=add
  ROOT s = f32[64] sqrt(r) }
ENTRY e { a = f32[64,30] parameter(0)
  b = f32[64,30] parameter(1)
  x = f32[64] fusion(a, b), kind=kCustom, calls=f
  y = f32[64] fusion(a, b), kind=kInput, calls=g
  ROOT t = (f32[64], f32[64]) tuple(y, x) })"));
}

TEST(RepeatedResults, OfTheEntry) {
  Check(R"(HloModule m
ENTRY e { a = f32[9] parameter(0)
  c = f32[3] constant({1, 2, 3})
  n = f32[9] negate(a)
  m = f32[9] negate(a)
  i = (f32[9], f32[3]) tuple(n, c)
  ROOT t = (f32[9], f32[9], f32[3], f32[9], f32[3], f32[9], (f32[9], f32[3])) tuple(n, a, c, m, c, a, i)
})");
}

TEST(RepeatedResults, OfLoopsAndBranches) {
  Check(R"(HloModule m
more { p = (s32[], f32[5], f32[5], f32[5]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  c = s32[] constant(4)
  ROOT l = pred[] compare(n, c), direction=LT }
next { p = (s32[], f32[5], f32[5], f32[5]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  x = f32[5] get-tuple-element(p), index=1
  y = f32[5] get-tuple-element(p), index=2
  o = s32[] constant(1)
  m = s32[] add(n, o)
  s = f32[5] add(x, y)
  ROOT t = (s32[], f32[5], f32[5], f32[5]) tuple(m, s, x, s) }
one { x = f32[5] parameter(0)
  n = f32[5] negate(x)
  ROOT t = (f32[5], f32[5], f32[5]) tuple(n, x, n) }
two { x = f32[5] parameter(0)
  c = f32[5] constant({1, 2, 3, 4, 5})
  ROOT t = (f32[5], f32[5], f32[5]) tuple(c, c, x) }
three { x = f32[5] parameter(0)
  ROOT t = (f32[5], f32[5], f32[5]) tuple(x, x, x) }
ENTRY e { a = f32[5] parameter(0)
  k = s32[] parameter(1)
  z = s32[] constant(0)
  i = (s32[], f32[5], f32[5], f32[5]) tuple(z, a, a, a)
  w = (s32[], f32[5], f32[5], f32[5]) while(i), condition=more, body=next
  x = f32[5] get-tuple-element(w), index=3
  c = (f32[5], f32[5], f32[5]) conditional(k, x, a, x), branch_computations={one, two, three}
  f = f32[5] get-tuple-element(c), index=0
  g = f32[5] get-tuple-element(c), index=1
  h = f32[5] get-tuple-element(c), index=2
  ROOT t = (f32[5], f32[5], f32[5], f32[5], f32[5], (f32[5], f32[5], f32[5])) tuple(f, g, h, f, x, c) })");
}

// Each result is in an argument's memory, donated or copied; the value is there twice, or was
// another argument.
TEST(RepeatedResults, InDonatedMemory) {
  auto module = ir::ParseOrDie(
      R"(HloModule m, input_output_alias={ {0}: (0, {}), {1}: (1, {}), {3}: (2, {}), {4}: (3, {}) }
ENTRY e { a = f32[6] parameter(0)
  b = f32[6] parameter(1)
  c = f32[6] parameter(2)
  d = f32[6] parameter(3)
  s = f32[6] add(a, b)
  ROOT t = (f32[6], f32[6], f32[6], f32[6], f32[6], f32[6]) tuple(s, s, s, d, c, c) })");
  std::vector<Literal> arguments = testing::RandomArguments(*module, 3);
  Literal expected = interp::Evaluate(*module, arguments).value();
  for (bool fuse : {true, false}) {
    auto loaded = testing::Load(*module, fuse);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    const std::vector<int>& aliases = loaded->artefact->program.signature.aliases;
    for (bool donate : {true, false}) {
      Execution run(*loaded->artefact);
      run.SetArguments(arguments);
      std::vector<void*> results(run.results().begin(), run.results().end());
      for (size_t r = 0; r < results.size() && donate; ++r) {
        if (aliases[r] >= 0) {
          results[r] = const_cast<void*>(run.arguments()[static_cast<size_t>(aliases[r])]);
        }
      }
      Status status = loaded->executable->Run(run.arguments(), results);
      ASSERT_TRUE(status.ok()) << status.ToString();
      for (size_t r = 0; r < results.size(); ++r) {
        if (results[r] != run.results()[r]) std::memcpy(run.results()[r], results[r], 24);
      }
      EXPECT_EQ(testing::Difference(expected, run.Result(), 1e-6, 1e-6), "")
          << (donate ? "donated" : "copied") << loaded->artefact->program.ToString();
    }
  }
}

// --- The check of plans, on plans that lack something.

codegen::LoweredProgram ProgramOf(std::string_view text) {
  auto module = ir::ParseOrDie(text);
  auto loaded = testing::Load(*module, true);
  EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
  return *loaded->lowered;
}

constexpr char kTwoKernels[] = R"(HloModule two
less { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT l = pred[] compare(x, y), direction=LT }
ENTRY e { a = f32[40] parameter(0)
  s = f32[40] sort(a), dimensions={0}, to_apply=less
  b = f32[40] reverse(s), dimensions={0}
  n = f32[40] sort(b), dimensions={0}, to_apply=less
  ROOT t = (f32[40], f32[40]) tuple(n, n) })";

TEST(CheckWritten, TakesWhatIsWhole) {
  EXPECT_TRUE(compiler::CheckWritten(ProgramOf(kTwoKernels)).ok());
}

TEST(CheckWritten, NamesAResultThatNobodyWrites) {
  codegen::LoweredProgram lowered = ProgramOf(kTwoKernels);
  program::Program& program = lowered.program;
  ASSERT_TRUE(std::holds_alternative<program::Copy>(program.steps.back().what));
  program.steps.pop_back();
  Status status = compiler::CheckWritten(lowered);
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_EQ(status.message(), "program 'two': nothing writes result 1 of shape f32[40]");
}

TEST(CheckWritten, NamesWhoReadsWhatNobodyWrote) {
  codegen::LoweredProgram lowered = ProgramOf(kTwoKernels);
  program::Program& program = lowered.program;
  program.steps.erase(program.steps.begin());
  Status status = compiler::CheckWritten(lowered);
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_NE(status.message().find("reads memory that nothing has written"), std::string::npos)
      << status.ToString();
}

TEST(CheckWritten, NamesAnOutputThatAKernelLeavesOut) {
  codegen::LoweredProgram lowered = ProgramOf(Fusion(
      "  r = f32[48] reduce(a, z), dimensions={1}, to_apply=add", "(f32[48], f32[48])", "r, r"));
  bool removed = false;
  for (kernel::ScheduledKernel& k : lowered.kernels) {
    for (kernel::Stage& stage : k.kernel.stages) {
      if (stage.stores.size() < 2) continue;
      stage.stores.pop_back();
      removed = true;
    }
  }
  ASSERT_TRUE(removed) << lowered.program.ToString();
  Status status = compiler::CheckWritten(lowered);
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_NE(status.message().find("does not write all 48 elements of its parameter 2"),
            std::string::npos)
      << status.ToString();
}

// What a body writes is there after no iteration alone; what both branches write is there.
TEST(CheckWritten, KnowsLoopsAndBranches) {
  codegen::LoweredProgram lowered;
  program::Program& program = lowered.program;
  program.name = "p";
  const auto from = program.allocations.Add({program::Allocation::Kind::kParameter, 0, 64});
  const auto to = program.allocations.Add({program::Allocation::Kind::kResult, 0, 64});
  program.signature.results = {Shape(ElementType::kF32, {16})};
  program.signature.aliases = {-1};
  const auto loop_id = program.launches.Add({"loop", {"loop"}});
  const program::Step copy{program::Copy{{from, 0, 64}, {to, 0, 64}}};
  program::While loop;
  loop.predicate = {from, 0, 1};
  loop.id = loop_id;
  loop.body = {copy};
  program.steps = {{loop}};
  EXPECT_EQ(compiler::CheckWritten(lowered).code(), Code::kInternal);
  std::swap(loop.body, loop.condition);
  program.steps = {{loop}};
  EXPECT_TRUE(compiler::CheckWritten(lowered).ok());
  program::Conditional conditional;
  conditional.index = {from, 0, 1};
  conditional.branches = {{copy}, {{program::Copy{{from, 0, 32}, {to, 32, 32}}}}};
  program.steps = {{conditional}};
  EXPECT_EQ(compiler::CheckWritten(lowered).code(), Code::kInternal);
  conditional.branches[1].push_back({program::Copy{{from, 0, 40}, {to, 0, 40}}});
  program.steps = {{conditional}};
  EXPECT_TRUE(compiler::CheckWritten(lowered).ok());
}

KILN_LABEL(gpu_sample, "RepeatedResults");

}  // namespace
}  // namespace kiln

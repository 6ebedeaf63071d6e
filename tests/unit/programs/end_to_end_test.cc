// HLO text in, numbers out: compiled code against the evaluator.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "compiler/compiler.h"
#include "interp/interpreter.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "random/module.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/labels.h"
#include "support/literal.h"

namespace kiln {
namespace {

using testing::Check;
using testing::Difference;
using testing::DifferenceOf;
using testing::Execution;
using testing::Load;
using testing::RandomArguments;

constexpr char kAdd[] = R"(
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
)";
constexpr char kMax[] = R"(
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b) }
)";

TEST(EndToEnd, FusedReduction) {
  Check(Cat("HloModule m\n", kAdd, R"(
ENTRY e { x = f32[1003] parameter(0)
  y = f32[1003] parameter(1)
  m = f32[1003] multiply(x, y)
  s = f32[1003] add(x, m)
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(s, zero), dimensions={0}, to_apply=add })"));
}

TEST(EndToEnd, SoftmaxOverRows) {
  Check(Cat("HloModule m\n", kAdd, kMax, R"(
ENTRY e { x = f32[37,51] parameter(0)
  ninf = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[37] reduce(x, ninf), dimensions={1}, to_apply=max
  mb = f32[37,51] broadcast(m), dimensions={0}
  s = f32[37,51] subtract(x, mb)
  e = f32[37,51] exponential(s)
  t = f32[37] reduce(e, zero), dimensions={1}, to_apply=add
  tb = f32[37,51] broadcast(t), dimensions={0}
  ROOT r = f32[37,51] divide(e, tb) })"));
}

TEST(EndToEnd, ColumnAndMiddleReductions) {
  Check(Cat("HloModule m\n", kAdd, R"(
ENTRY e { x = f32[19,7,33] parameter(0)
  zero = f32[] constant(1.5)
  a = f32[7,33] reduce(x, zero), dimensions={0}, to_apply=add
  b = f32[19,33] reduce(x, zero), dimensions={1}, to_apply=add
  c = f32[7] reduce(x, zero), dimensions={0,2}, to_apply=add
  ROOT t = (f32[7,33], f32[19,33], f32[7]) tuple(a, b, c) })"));
}

// Nothing is left to walk, and what is read lies across.
TEST(EndToEnd, SumsOfOneTerm) {
  Check(Cat("HloModule m\n", kAdd, R"(
ENTRY e { x = f32[9,12,1]{0,1,2} parameter(0)
  y = f32[9,12,1] parameter(1)
  zero = f32[] constant(1.5)
  p = pred[9,12,1] compare(x, y), direction=LT
  s = f32[9,12,1] select(p, x, y)
  ROOT r = f32[9,12] reduce(s, zero), dimensions={2}, to_apply=add })"));
}

TEST(EndToEnd, ArgumentOfMaximumByTwoOperandReduce) {
  Check(R"(HloModule m
argmax { v = f32[] parameter(0)
  i = s32[] parameter(1)
  w = f32[] parameter(2)
  j = s32[] parameter(3)
  p = pred[] compare(v, w), direction=GE
  x = f32[] select(p, v, w)
  y = s32[] select(p, i, j)
  ROOT t = (f32[], s32[]) tuple(x, y) }
ENTRY e { x = f32[9,41] parameter(0)
  i = s32[9,41] iota(), iota_dimension=1
  ninf = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = (f32[9], s32[9]) reduce(x, i, ninf, zero), dimensions={1}, to_apply=argmax })");
}

TEST(EndToEnd, PadConcatenateSliceTranspose) {
  Check(R"(HloModule m
ENTRY e { x = f32[5,9] parameter(0)
  y = f32[5,4] parameter(1)
  v = f32[] constant(2.5)
  p = f32[9,12] pad(x, v), padding=1_-1_1x2_1
  c = f32[5,13] concatenate(x, y), dimensions={1}
  s = f32[3,4] slice(c), slice={[0:5:2], [1:13:3]}
  t = f32[13,5] transpose(c), dimensions={1,0}
  n = f32[13,5] negate(t)
  r = f32[65] reshape(n)
  ROOT o = (f32[9,12], f32[3,4], f32[65]) tuple(p, s, r) })");
}

TEST(EndToEnd, DotsOfAllKinds) {
  Check(R"(HloModule m
ENTRY e { x = f32[3,17,29] parameter(0)
  y = f32[3,29,23] parameter(1)
  v = f32[29] parameter(2)
  b = f32[23] parameter(3)
  d = f32[3,17,23] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  bb = f32[3,17,23] broadcast(b), dimensions={2}
  a = f32[3,17,23] add(d, bb)
  h = f32[3,17,23] tanh(a)
  mv = f32[3,17] dot(x, v), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  vm = f32[3,23] dot(y, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  o = f32[3,29,3,29] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  i = f32[] dot(v, v), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT t = (f32[3,17,23], f32[3,17], f32[3,23], f32[3,29,3,29], f32[]) tuple(h, mv, vm, o, i) })",
        1e-4, 1e-4);
}

TEST(EndToEnd, TransposedDotsFold) {
  Check(R"(HloModule m
ENTRY e { x = f32[100,33] parameter(0)
  g = f32[100,10] parameter(1)
  w = f32[33,10] parameter(2)
  xt = f32[33,100] transpose(x), dimensions={1,0}
  gw = f32[33,10] dot(xt, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  wt = f32[10,33] transpose(w), dimensions={1,0}
  gx = f32[100,33] dot(g, wt), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[33,10], f32[100,33]) tuple(gw, gx) })",
        1e-4, 1e-4);
}

TEST(EndToEnd, WhileSwapsItsState) {
  Check(R"(HloModule m
cond { s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(7)
  ROOT p = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[8] get-tuple-element(s), index=1
  b = f32[8] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  c = f32[8] add(a, b)
  ROOT t = (s32[], f32[8], f32[8]) tuple(j, b, c) }
ENTRY e { x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[8], f32[8]) tuple(zero, x, y)
  ROOT w = (s32[], f32[8], f32[8]) while(t), condition=cond, body=body })");
}

TEST(EndToEnd, ConditionalsByPredAndIndex) {
  Check(R"(HloModule m
double { x = f32[6] parameter(0)
  ROOT d = f32[6] add(x, x) }
square { x = f32[6] parameter(0)
  ROOT d = f32[6] multiply(x, x) }
same { ROOT x = f32[6] parameter(0) }
ENTRY e { p = pred[] parameter(0)
  i = s32[] parameter(1)
  x = f32[6] parameter(2)
  a = f32[6] conditional(p, x, x), true_computation=double, false_computation=square
  b = f32[6] conditional(i, x, a, x), branch_computations={double, square, same}
  ROOT t = (f32[6], f32[6], f32[6]) tuple(a, b, x) })");
}

TEST(EndToEnd, EmptyAndScalarShapes) {
  Check(Cat("HloModule m\n", kAdd, R"(
ENTRY e { x = f32[0,3] parameter(0)
  y = f32[] parameter(1)
  zero = f32[] constant(3)
  n = f32[0,3] negate(x)
  r = f32[3] reduce(x, zero), dimensions={0}, to_apply=add
  a = f32[] add(y, zero)
  c = f32[2] broadcast(a), dimensions={}
  ROOT t = (f32[0,3], f32[3], f32[2]) tuple(n, r, c) })"));
}

TEST(EndToEnd, IntegersAndPredicates) {
  Check(R"(HloModule m
ENTRY e { a = s32[77] parameter(0)
  b = s32[77] parameter(1)
  u = u8[77] parameter(2)
  w = s64[77] parameter(3)
  d = s32[77] divide(a, b)
  r = s32[77] remainder(a, b)
  p = s32[77] power(a, b)
  l = s32[77] shift-left(a, b)
  s = s32[77] shift-right-arithmetic(a, b)
  g = s32[77] shift-right-logical(a, b)
  c = pred[77] compare(a, b), direction=LT
  n = pred[77] not(c)
  x = pred[77] xor(c, n)
  f = f32[77] convert(u)
  k = u8[77] multiply(u, u)
  m = s64[77] maximum(w, w)
  q = s64[77] divide(w, m)
  z = s32[77] count-leading-zeros(a)
  o = s32[77] popcnt(a)
  ROOT t = (s32[77], s32[77], s32[77], s32[77], s32[77], s32[77], pred[77], pred[77], f32[77], u8[77], s64[77], s32[77], s32[77]) tuple(d, r, p, l, s, g, n, x, f, k, q, z, o) })");
}

// Vectors that begin in one operand and end in the next: memory beyond either is not read, not even
// where the first half of the lanes has none of its own.
TEST(EndToEnd, ConcatenationsReadOnlyTheirOperands) {
  Check(R"(HloModule m
ENTRY e { x = s64[2,4,7] parameter(0)
  y = s64[6] parameter(1)
  zero = s64[] constant(0)
  one = s64[] constant(1)
  zeros = s64[6,4,7] broadcast(zero), dimensions={}
  ones = s64[6,4,7] broadcast(one), dimensions={}
  c = s64[6,4,7] concatenate(x, x, x), dimensions={0}
  p = pred[6,4,7] compare(c, zeros), direction=GT
  b = s64[6,4,7] broadcast(y), dimensions={0}
  s = s64[6,4,7] select(p, c, b)
  q = pred[6,4,7] compare(s, ones), direction=GE
  r = pred[6,4,7] select(q, p, q)
  ROOT o = pred[6,4,14] concatenate(q, r), dimensions={2}
})");
}

// Of eight pieces of different lengths, some of which are computed or in the middle of an array.
TEST(EndToEnd, ConcatenationsOfManyOperands) {
  Check(R"(HloModule m
ENTRY e { a = f32[3,300] parameter(0)
  b = f32[1,300] parameter(1)
  c = f32[9,300] parameter(2)
  s = s32[] parameter(3)
  zero = s32[] constant(0)
  d = f32[4,300] slice(c), slice={[3:7], [0:300]}
  f = f32[1,300] negate(b)
  g = f32[2,300] dynamic-slice(c, s, zero), dynamic_slice_sizes={2,300}
  h = f32[2,300] slice(a), slice={[1:3], [0:300]}
  all = f32[25,300] concatenate(a, b, d, f, g, h, c, a), dimensions={0}
  ROOT r = f32[25,300] multiply(all, all)
})");
}

TEST(EndToEnd, ManyThreadsRunOneExecutable) {
  auto module = ir::ParseOrDie(Cat("HloModule m\n", kAdd, R"(
ENTRY e { x = f32[300,40] parameter(0)
  y = f32[40,50] parameter(1)
  zero = f32[] constant(0)
  d = f32[300,50] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[300,50] tanh(d)
  r = f32[300] reduce(t, zero), dimensions={1}, to_apply=add
  ROOT o = (f32[300], f32[300,50]) tuple(r, d) })"));
  auto loaded = Load(*module, true);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  std::vector<Literal> arguments = RandomArguments(*module, 3);
  Execution first(*loaded->artefact);
  first.SetArguments(arguments);
  // One thread gives the same bits as two.
  ASSERT_TRUE(loaded->executable->Run(first.arguments(), first.results(), {.threads = 1}).ok());
  Literal expected = first.Result();
  std::vector<std::thread> threads;
  std::vector<int> wrong(8, 0);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Execution run(*loaded->artefact);
      run.SetArguments(arguments);
      for (int i = 0; i < 50; ++i) {
        bool ok = loaded->executable->Run(run.arguments(), run.results()).ok();
        wrong[t] += !ok || !(run.Result() == expected);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (int w : wrong) EXPECT_EQ(w, 0);
}

TEST(EndToEnd, FoldsAreOneKernel) {
  auto module = ir::ParseOrDie(Cat("HloModule m\n", kAdd, R"(
ENTRY e { x = f32[100000] parameter(0)
  y = f32[100000] parameter(1)
  z = f32[100000] parameter(2)
  m = f32[100000] multiply(y, z)
  s = f32[100000] add(x, m)
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(s, zero), dimensions={0}, to_apply=add })"));
  auto loaded = Load(*module, true);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(program::CountKernels(loaded->artefact->program.steps), 1);
  // No intermediate: what is left is the partial sums.
  EXPECT_LT(loaded->artefact->program.arena_bytes, 64 << 10);
}

// The corpora's modules have no expected values: compiled code and evaluator must agree.
TEST(CorpusHlo, CompiledAgreesWithEvaluator) {
  const char* root = std::getenv("KILN_CONFORMANCE_DIR");
  if (!root) GTEST_SKIP() << "KILN_CONFORMANCE_DIR is not set: no module was compared";
  int compared = 0, unimplemented = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".hlo") continue;
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    auto module = ir::ParseHloText(text.str());
    auto is_there = [&](const Status& status) {
      if (status.ok()) return true;
      EXPECT_EQ(status.code(), Code::kUnimplemented) << entry.path() << ": " << status.ToString();
      ++unimplemented;
      return false;
    };
    if (!is_there(module.status())) continue;
    std::vector<Literal> arguments = RandomArguments(**module, 5);
    auto expected = interp::Evaluate(**module, arguments);
    if (!is_there(expected.status())) continue;
    auto loaded = Load(**module, true);
    if (!is_there(loaded.status())) continue;
    Execution run(*loaded->artefact);
    run.SetArguments(arguments);
    ASSERT_TRUE(loaded->executable->Run(run.arguments(), run.results()).ok());
    EXPECT_EQ(Difference(*expected, run.Result(), 1e-2, 1e-2), "") << entry.path();
    ++compared;
  }
  printf("  %d modules compared, %d hold ops or types that are not there yet\n", compared,
         unimplemented);
  EXPECT_GT(compared, 0);
}

KILN_LABEL(corpus, "CorpusHlo");
KILN_LABEL(gpu_sample, "EndToEnd");
KILN_LABEL(gpu_smoke, "EndToEnd.FusedReduction");

}  // namespace
}  // namespace kiln

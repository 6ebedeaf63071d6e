// Compiled ops that read and write slices against the evaluator, and what they copy.
#include <gtest/gtest.h>

#include <chrono>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/labels.h"
#include "support/literal.h"

namespace kiln {
namespace {

using testing::Check;
using testing::Execution;
using testing::Load;

TEST(IndexedOps, DynamicSlices) {
  Check(R"(HloModule m
ENTRY e { x = f32[7,40] parameter(0)
  y = u8[30] parameter(1)
  i = s32[] parameter(2)
  j = s64[] parameter(3)
  k = u8[] parameter(4)
  a = f32[2,40] dynamic-slice(x, i, i), dynamic_slice_sizes={2,40}
  b = f32[7,19] dynamic-slice(x, j, j), dynamic_slice_sizes={7,19}
  n = f32[7,19] negate(b)
  t = f32[19,7] transpose(n), dimensions={1,0}
  c = u8[9] dynamic-slice(y, k), dynamic_slice_sizes={9}
  two = s32[] constant(2)
  h = s32[] multiply(i, two)
  w = f32[7,40] tanh(x)
  d = f32[3,3] dynamic-slice(w, h, i), dynamic_slice_sizes={3,3}
  e = f32[1,1] dynamic-slice(x, h, h), dynamic_slice_sizes={1,1}
  f = f32[] reshape(e)
  g = f32[5] broadcast(f), dimensions={}
  ROOT o = (f32[2,40], f32[19,7], u8[9], f32[3,3], f32[5]) tuple(a, t, c, d, g) })");
}

TEST(IndexedOps, DynamicSlicesOfReductionsAndPads) {
  Check(R"(HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[11,40] parameter(0)
  i = s32[] parameter(1)
  zero = f32[] constant(0)
  s = f32[11,16] dynamic-slice(x, i, i), dynamic_slice_sizes={11,16}
  r = f32[11] reduce(s, zero), dimensions={1}, to_apply=add
  p = f32[13,44] pad(x, zero), padding=1_1x3_1
  d = f32[6,40] dynamic-slice(p, i, i), dynamic_slice_sizes={6,40}
  q = f32[40] reduce(d, zero), dimensions={0}, to_apply=add
  l = f32[440] reshape(x)
  m = f32[37] dynamic-slice(l, i), dynamic_slice_sizes={37}
  ROOT o = (f32[11], f32[40], f32[37]) tuple(r, q, m) })");
}

TEST(IndexedOps, DynamicUpdateSlices) {
  Check(R"(HloModule m
ENTRY e { x = f32[7,40] parameter(0)
  u = f32[2,33] parameter(1)
  i = s32[] parameter(2)
  v = f32[7,40] parameter(3)
  none = f32[0,40] parameter(4)
  a = f32[7,40] dynamic-update-slice(x, u, i, i)
  w = f32[7,40] tanh(x)
  t = f32[2,33] negate(u)
  b = f32[7,40] dynamic-update-slice(w, t, i, i)
  c = f32[7,40] exponential(b)
  d = f32[7,40] dynamic-update-slice(c, v, i, i)
  e = f32[7,40] dynamic-update-slice(x, none, i, i)
  o1 = f32[2,33] dynamic-slice(w, i, i), dynamic_slice_sizes={2,33}
  o2 = f32[2,33] add(o1, u)
  f = f32[7,40] dynamic-update-slice(w, o2, i, i)
  ROOT o = (f32[7,40], f32[7,40], f32[7,40], f32[7,40], f32[7,40]) tuple(a, c, d, e, f) })");
}

// Updates of transposed memory, of an array that is needed afterwards, and of the array by itself.
TEST(IndexedOps, DynamicUpdateSlicesOfSharedArrays) {
  Check(R"(HloModule m
ENTRY e { x = f32[6,20]{0,1} parameter(0)
  u = f32[3,20]{1,0} parameter(1)
  i = s32[] parameter(2)
  a = f32[6,20]{0,1} dynamic-update-slice(x, u, i, i)
  b = f32[6,20]{1,0} dynamic-update-slice(x, u, i, i)
  w = f32[6,20]{1,0} tanh(b)
  s = f32[3,20]{1,0} slice(w), slice={[0:3], [0:20]}
  c = f32[6,20]{1,0} dynamic-update-slice(w, s, i, i)
  d = f32[6,20]{1,0} dynamic-update-slice(w, u, i, i)
  ROOT o = (f32[6,20]{0,1}, f32[6,20]{1,0}, f32[6,20]{1,0}, f32[6,20]{1,0}) tuple(a, w, c, d) })");
}

constexpr char kScan[] = R"(HloModule scan
cond { s = (s32[], f32[ROWS,COLUMNS]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(ROWS)
  ROOT p = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[ROWS,COLUMNS]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[ROWS,COLUMNS] get-tuple-element(s), index=1
  one = s32[] constant(1)
  zero = s32[] constant(0)
  j = s32[] add(i, one)
  p = s32[] subtract(i, one)
  row = f32[1,COLUMNS] dynamic-slice(x, p, zero), dynamic_slice_sizes={1,COLUMNS}
  old = f32[1,COLUMNS] dynamic-slice(x, i, zero), dynamic_slice_sizes={1,COLUMNS}
  sum = f32[1,COLUMNS] add(row, old)
  next = f32[1,COLUMNS] tanh(sum)
  y = f32[ROWS,COLUMNS] dynamic-update-slice(x, next, i, zero)
  ROOT t = (s32[], f32[ROWS,COLUMNS]) tuple(j, y) }
ENTRY e { x = f32[ROWS,COLUMNS] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[ROWS,COLUMNS]) tuple(zero, x)
  w = (s32[], f32[ROWS,COLUMNS]) while(t), condition=cond, body=body
  ROOT y = f32[ROWS,COLUMNS] get-tuple-element(w), index=1 })";

std::string Scan(int64_t rows, int64_t columns) {
  std::string text = kScan;
  for (auto [name, size] : {std::pair("ROWS", rows), {"COLUMNS", columns}}) {
    for (size_t at; (at = text.find(name)) != std::string::npos;) {
      text.replace(at, std::string_view(name).size(), Cat(size));
    }
  }
  return text;
}

// The number of bytes that copies of the steps move.
int64_t CopiedBytes(const program::Steps& steps) {
  int64_t bytes = 0;
  for (const program::Step& step : steps) {
    if (const auto* copy = std::get_if<program::Copy>(&step.what)) bytes += copy->from.bytes;
    if (const auto* loop = std::get_if<program::While>(&step.what)) {
      bytes += CopiedBytes(loop->condition) + CopiedBytes(loop->body);
    }
  }
  return bytes;
}

TEST(IndexedOps, LoopThatUpdatesRows) { Check(Scan(13, 37)); }

TEST(IndexedOps, LoopsUpdateInPlace) {
  auto module = ir::ParseOrDie(Scan(1000, 256));
  for (bool fuse : {true, false}) {
    auto loaded = Load(*module, fuse);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    for (const program::Step& step : loaded->artefact->program.steps) {
      const auto* loop = std::get_if<program::While>(&step.what);
      if (!loop) continue;
      EXPECT_LT(CopiedBytes(loop->body), 64) << loaded->artefact->program.ToString();
    }
  }
}

// Rows of arrays that are 64 times as large take as long to update.
TEST(IndexedOps, LoopTimeDependsOnRowsAlone) {
  auto seconds = [](int64_t rows) {
    std::string text = Scan(rows, 64);
    size_t at = text.find(Cat("constant(", rows, ")"));
    text.replace(at, Cat("constant(", rows, ")").size(), "constant(1000)");
    auto module = ir::ParseOrDie(text);
    auto loaded = Load(*module, true);
    EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
    Execution run(*loaded->artefact);
    run.SetArguments(testing::RandomArguments(*module, 1));
    double best = 1e9;
    for (int k = 0; k < 5; ++k) {
      auto start = std::chrono::steady_clock::now();
      EXPECT_TRUE(loaded->executable->Run(run.arguments(), run.results()).ok());
      best = std::min(
          best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
  };
  double small = seconds(1000), large = seconds(64000);
  // What is left is the copy of the argument to the result, 16 MB, and on a GPU its way there and
  // back. Were every step a copy it would be a thousand times as much.
  EXPECT_LT(large, small + (testing::IsTestOfGpu() ? 0.5 : 0.05))
      << small << " s and " << large << " s";
}

TEST(IndexedOps, Gathers) {
  Check(R"(HloModule m
ENTRY e { x = f32[7,40] parameter(0)
  i = s32[12] parameter(1)
  j = s64[3,2,2] parameter(2)
  k = u8[5] parameter(3)
  b = s32[7,3,1] parameter(4)
  s = s32[] parameter(5)
  rows = f32[12,40] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,40}
  columns = f32[7,12] gather(x, i), offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={7,1}
  elements = f32[3,2] gather(x, j), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={1,0}, index_vector_dim=1, slice_sizes={1,1}
  slices = f32[2,5,30] gather(x, k), offset_dims={0,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={2,30}
  batches = f32[7,3] gather(x, b), offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1}
  one = f32[40] gather(x, s), offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0, slice_sizes={1,40}
  ROOT o = (f32[12,40], f32[7,12], f32[3,2], f32[2,5,30], f32[7,3], f32[40]) tuple(rows, columns, elements, slices, batches, one) })");
}

// Indices that are computed, and consumers and producers of one kernel.
TEST(IndexedOps, FusedGathers) {
  constexpr char kText[] = R"(HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[50,64] parameter(0)
  i = s32[9,4] parameter(1)
  y = f32[64] parameter(2)
  three = s32[] constant(3)
  threes = s32[9,4] broadcast(three), dimensions={}
  at = s32[9,4] multiply(i, threes)
  g = f32[9,4,64] gather(x, at), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,64}
  yb = f32[9,4,64] broadcast(y), dimensions={2}
  m = f32[9,4,64] multiply(g, yb)
  zero = f32[] constant(0)
  ROOT r = f32[9,64] reduce(m, zero), dimensions={1}, to_apply=add })";
  Check(kText);
  auto loaded = Load(*ir::ParseOrDie(kText), true);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(program::CountKernels(loaded->artefact->program.steps), 1)
      << loaded->artefact->program.ToString();
}

constexpr char kReducers[] = R"(
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
second { a = f32[] parameter(0)
  ROOT b = f32[] parameter(1) }
mix { a = f32[] parameter(0)
  b = f32[] parameter(1)
  k = f32[] constant(0.5)
  m = f32[] multiply(a, k)
  ROOT c = f32[] subtract(m, b) }
)";

TEST(IndexedOps, Scatters) {
  Check(Cat("HloModule m\n", kReducers, R"(
ENTRY e { x = f32[7,70] parameter(0)
  i = s32[12] parameter(1)
  u = f32[12,70] parameter(2)
  v = f32[7,12] parameter(3)
  j = s64[2,5] parameter(4)
  w = f32[5] parameter(5)
  k = u8[5,1] parameter(6)
  z = f32[2,5,33] parameter(7)
  b = s32[7,3,1] parameter(8)
  q = f32[7,3] parameter(9)
  rows = f32[7,70] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
  mixed = f32[7,70] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=mix
  columns = f32[7,70] scatter(x, i, v), update_window_dims={0}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=mix
  elements = f32[7,70] scatter(x, j, w), update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=0, to_apply=second
  slices = f32[7,70] scatter(x, k, z), update_window_dims={0,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=mix
  overlaps = f32[7,70] scatter(x, k, z), update_window_dims={0,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=mix
  batches = f32[7,70] scatter(x, b, q), update_window_dims={}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=2, to_apply=mix
  ROOT o = (f32[7,70], f32[7,70], f32[7,70], f32[7,70], f32[7,70], f32[7,70], f32[7,70]) tuple(rows, mixed, columns, elements, slices, overlaps, batches) })"),
        1e-6, 1e-6);
}

// What is scattered and where, made in the kernel; into zeros that nobody else needs, into an array
// that somebody does, and several arrays at once.
TEST(IndexedOps, FusedScatters) {
  Check(Cat("HloModule m\n", kReducers, R"(
larger { v = f32[] parameter(0)
  i = s32[] parameter(1)
  w = f32[] parameter(2)
  j = s32[] parameter(3)
  p = pred[] compare(v, w), direction=GE
  x = f32[] select(p, v, w)
  y = s32[] select(p, i, j)
  ROOT t = (f32[], s32[]) tuple(x, y) }
ENTRY e { i = s32[40] parameter(0)
  u = f32[40,16] parameter(1)
  v = f32[40] parameter(2)
  zero = f32[] constant(0)
  zeros = f32[9,16] broadcast(zero), dimensions={}
  two = s32[] constant(2)
  twos = s32[40] broadcast(two), dimensions={}
  at = s32[40] remainder(i, twos)
  t = f32[40,16] tanh(u)
  a = f32[9,16] scatter(zeros, at, t), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
  n = f32[9,16] negate(a)
  b = f32[9,16] scatter(n, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
  c = f32[9,16] multiply(n, b)
  ninf = f32[] constant(-inf)
  least = f32[9] broadcast(ninf), dimensions={}
  none = s32[] constant(-1)
  nones = s32[9] broadcast(none), dimensions={}
  number = s32[40] iota(), iota_dimension=0
  m = (f32[9], s32[9]) scatter(least, nones, i, v, number), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=larger
  m1 = s32[9] get-tuple-element(m), index=1
  ROOT o = (f32[9,16], (f32[9], s32[9]), s32[9]) tuple(c, m, m1) })"),
        1e-5, 1e-5);
}

// Indices and updates are made in vectors, and put in their places one by one: many in one place,
// some in none, for sizes that vectors divide and others.
TEST(ScattersByLanes, AreInOrder) {
  constexpr std::string_view kCombiners[] = {"add(a, b)", "maximum(a, b)", "subtract(b, a)",
                                             "add(b, b)"};
  for (std::string_view type : {"u8", "s32", "f16", "f32", "f64"}) {
    for (int64_t size : {64, 203}) {
      for (std::string_view combiner : kCombiners) {
        const std::string text = Cat(
            "HloModule m\ncombine { a = ", type, "[] parameter(0)\n  b = ", type,
            "[] parameter(1)\n  ROOT c = ", type, "[] ", combiner, " }\nENTRY e { x = ", type,
            "[37] parameter(0)\n  i = s32[3,", size, "] parameter(1)\n  u = ", type, "[3,", size,
            R"(] parameter(2)
  k = s32[] constant(41)
  three = s32[] constant(3)
  ks = s32[3,)",
            size, "] broadcast(k), dimensions={}\n  threes = s32[3,", size,
            "] broadcast(three), dimensions={}\n  m = s32[3,", size,
            "] multiply(i, threes)\n  n = s32[3,", size, "] remainder(m, ks)\n  a = s32[3,", size,
            "] abs(n)\n  v = ", type, "[3,", size, "] add(u, u)\n  ROOT r = ", type,
            "[37] scatter(x, a, v), update_window_dims={}, inserted_window_dims={0}, "
            "scatter_dims_to_operand_dims={0}, index_vector_dim=2, to_apply=combine }");
        Check(text);
      }
    }
  }
}

TEST(IndexedOps, ScattersOfUniqueIndicesAndOfNone) {
  Check(Cat("HloModule m\n", kReducers, R"(
ENTRY e { x = f32[60,50] parameter(0)
  u = f32[40,50] parameter(1)
  none = s32[0,2] parameter(2)
  w = f32[0] parameter(3)
  i = s32[40] iota(), iota_dimension=0
  three = s32[] constant(3)
  threes = s32[40] broadcast(three), dimensions={}
  at = s32[40] multiply(i, threes)
  a = f32[60,50] scatter(x, at, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, indices_are_sorted=true, to_apply=mix
  b = f32[60,50] scatter(x, none, w), update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=add
  ROOT o = (f32[60,50], f32[60,50]) tuple(a, b) })"),
        1e-6, 1e-6);
}

// Colliding updates come in order however many threads there are.
TEST(IndexedOps, ScatterGivesTheSameBitsForAnyNumberOfThreads) {
  auto module = ir::ParseOrDie(Cat("HloModule m\n", kReducers, R"(
ENTRY e { x = f32[16,2048] parameter(0)
  i = s32[300] parameter(1)
  u = f32[300,2048] parameter(2)
  ROOT a = f32[16,2048] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=mix })"));
  auto loaded = Load(*module, true);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  bool parallel = false;
  for (const kernel::ScheduledKernel& k : loaded->lowered->kernels) {
    parallel |= testing::TasksOf(k) > 1;
  }
  EXPECT_TRUE(parallel || testing::IsTestOfGpu()) << loaded->artefact->program.ToString();
  std::vector<Literal> arguments = testing::RandomArguments(*module, 3);
  Execution first(*loaded->artefact), second(*loaded->artefact);
  first.SetArguments(arguments);
  second.SetArguments(arguments);
  ASSERT_TRUE(loaded->executable->Run(first.arguments(), first.results(), {.threads = 1}).ok());
  for (int k = 0; k < 4; ++k) {
    ASSERT_TRUE(loaded->executable->Run(second.arguments(), second.results()).ok());
    EXPECT_TRUE(first.SameBits(second));
  }
  EXPECT_EQ(testing::Difference(*interp::Evaluate(*module, arguments), first.Result(), 0, 0), "");
}

TEST(IndexedOps, LoopsScatterInPlace) {
  constexpr char kText[] = R"(
cond { s = (s32[], f32[500,64], s32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(20)
  ROOT p = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[500,64], s32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[500,64] get-tuple-element(s), index=1
  at = s32[4] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ib = s32[4] broadcast(i), dimensions={}
  where = s32[4] add(at, ib)
  g = f32[4,64] gather(x, where), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}
  t = f32[4,64] tanh(g)
  y = f32[500,64] scatter(x, at, t), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
  ROOT t2 = (s32[], f32[500,64], s32[4]) tuple(j, y, at) }
ENTRY e { x = f32[500,64] parameter(0)
  at = s32[4] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[500,64], s32[4]) tuple(zero, x, at)
  ROOT w = (s32[], f32[500,64], s32[4]) while(t), condition=cond, body=body })";
  std::string text = Cat("HloModule m\n", kReducers, kText);
  Check(text, 1e-5, 1e-5);
  for (bool fuse : {true, false}) {
    auto loaded = Load(*ir::ParseOrDie(text), fuse);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    for (const program::Step& step : loaded->artefact->program.steps) {
      const auto* loop = std::get_if<program::While>(&step.what);
      if (!loop) continue;
      EXPECT_LT(CopiedBytes(loop->body), 128) << loaded->artefact->program.ToString();
    }
  }
}

// Half types, integers and preds move as they are.
TEST(IndexedOps, TypesThatAreMoved) {
  for (std::string_view type : {"f16", "bf16", "s8", "u16", "s64", "pred", "f64"}) {
    std::string text = R"(HloModule m
second { a = T[] parameter(0)
  ROOT b = T[] parameter(1) }
ENTRY e { x = T[9,33] parameter(0)
  i = s32[4] parameter(1)
  u = T[4,33] parameter(2)
  s = s16[] parameter(3)
  g = T[4,33] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,33}
  c = T[9,33] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=second
  d = T[2,30] dynamic-slice(x, s, s), dynamic_slice_sizes={2,30}
  p = T[9,33] dynamic-update-slice(x, u, s, s)
  r = T[9,33] reverse(p), dimensions={0,1}
  ROOT o = (T[4,33], T[9,33], T[2,30], T[9,33]) tuple(g, c, d, r) })";
    for (size_t at = 0; (at = text.find("T[", at)) != std::string::npos; at += type.size()) {
      text.replace(at, 1, type);
    }
    Check(text, 0, 0);
  }
}

KILN_LABEL(gpu_sample, "IndexedOps");

}  // namespace
}  // namespace kiln

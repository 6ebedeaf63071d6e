// Row kernels: which groups become one, and random ones against the evaluator.

#include <gtest/gtest.h>

#include <cstring>

#include "base/strings.h"
#include "device/cpu/executable.h"
#include "interp/interpreter.h"
#include "kernel/build.h"
#include "kernel/fusible.h"
#include "passes/pipelines.h"
#include "random/module.h"
#include "random/rows.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/literal.h"

namespace kiln {
namespace {

int CountRowKernels(const ir::Module& module) {
  int count = 0;
  for (ir::Instruction* i : module.entry()->instructions()) {
    count += kernel::RoleOf(*i) == kernel::FusionRole::kRows;
  }
  return count;
}

// To a machine of small caches small arrays are large: rows go through a kernel as through a
// pipeline, are asked for ahead, and written past the caches unless the last one is large. Strips
// of columns want a second cache that has a strip.
enum class Caches { kOwn, kSmall, kSmallButLast, kForStrips };

struct Met {
  int pipelined = 0, staged = 0, nontemporal = 0, prefetched = 0, of_many_rows = 0;
  int strips = 0, kept = 0, by_columns = 0, split = 0, values = 0;
};

void Check(const ir::Module& module, int vector_bytes, Caches caches, Met& met) {
  std::vector<Literal> arguments = testing::RandomArguments(module, 3);
  auto expected = interp::Evaluate(module, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  target::Target target = target::HostCpuWithVectors(vector_bytes);
  if (caches == Caches::kSmall) target.cpu.l2_bytes = target.cpu.l3_bytes = 256;
  if (caches == Caches::kSmallButLast) {
    target.cpu.l2_bytes = 256;
    target.cpu.l3_bytes = 16 << 20;
  }
  if (caches == Caches::kForStrips) {
    target.cpu.l1_bytes = 1 << 10;
    target.cpu.l2_bytes = target.cpu.l3_bytes = 32 << 10;
  }
  auto compiled = testing::CompileWithKernels(module.Clone(), target, {.verify = true});
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  auto shared = std::make_shared<const program::Artefact>(std::move(compiled->artefact));
  for (const kernel::ScheduledKernel& k : compiled->lowered.kernels) {
    const auto* nest = std::get_if<kernel::CpuNestSchedule>(&k.schedule);
    if (!nest) continue;
    met.pipelined += nest->pipelined;
    met.of_many_rows += nest->pipelined && !nest->nontemporal && nest->items <= 3;
    met.staged += !nest->staged.empty();
    met.values += !nest->kept.empty();
    met.nontemporal += nest->nontemporal;
    met.prefetched += !nest->prefetches.empty();
    met.strips += nest->strips.width > 0;
    met.split += nest->strips.width > 0 && nest->split > 0;
    met.kept += !nest->strips.kept.empty();
    met.by_columns += std::ranges::any_of(
        nest->stages, [](const kernel::CpuStageSchedule& stage) { return stage.by_columns; });
  }
  runtime::Allocator allocator;
  runtime::ThreadPool pool(2);
  auto executable = device::CpuExecutable::Load(*shared, allocator, pool);
  ASSERT_TRUE(executable.ok()) << executable.status().ToString();
  std::vector<std::byte*> memory;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const Literal& argument : arguments) {
    memory.push_back(allocator.Allocate(argument.byte_size()).value());
    std::memcpy(memory.back(), argument.data(), static_cast<size_t>(argument.byte_size()));
    in.push_back(memory.back());
  }
  const std::vector<Shape>& results = shared->program.signature.results;
  for (const Shape& shape : results) {
    memory.push_back(allocator.Allocate(shape.byte_size()).value());
    out.push_back(memory.back());
  }
  Status status = (*executable)->Run(in, out, {});
  ASSERT_TRUE(status.ok()) << status.ToString();
  for (size_t i = 0; i < results.size(); ++i) {
    Literal actual(results[i]);
    std::memcpy(actual.data(), out[i], static_cast<size_t>(actual.byte_size()));
    EXPECT_EQ(testing::Difference(expected->elements()[i], actual, 1e-5, 1e-5), "")
        << "result " << i << ", " << vector_bytes << "-byte vectors\n"
        << shared->program.ToString();
  }
  for (size_t i = 0; i < memory.size(); ++i) {
    bool argument = i < arguments.size();
    allocator.Deallocate(
        memory[i], argument ? arguments[i].byte_size() : results[i - arguments.size()].byte_size());
  }
}

TEST(RowKernels, RandomProgramsAgreeWithEvaluator) {
  int kernels = 0;
  Met met;
  const testing::Seeds seeds = testing::RandomSeeds(60);
  for (int seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    SCOPED_TRACE(Cat("seed ", seed));
    auto module = testing::RandomRowsModule(static_cast<uint64_t>(seed));
    for (int bytes : {64, 32, 16}) {
      Check(*module, bytes, Caches::kOwn, met);
      Check(*module, bytes, Caches::kSmall, met);
      Check(*module, bytes, Caches::kForStrips, met);
    }
    if (HasFatalFailure() || HasNonfatalFailure()) {
      printf("%s\n", ir::ToHloText(*module).c_str());
      return;
    }
    passes::PassContext context;
    context.disabled = {"horizontal-fusion"};
    ASSERT_TRUE(passes::RunPipeline("test", passes::CpuPipeline(), *module, context).ok());
    kernels += CountRowKernels(*module);
  }
  EXPECT_GT(3 * kernels, seeds.count);
  EXPECT_GT(met.pipelined, 0);
  EXPECT_GT(met.nontemporal, 0);
  EXPECT_GT(met.prefetched, 0);
}

// Softmax, whose rows of powers are staged, and a sum of squares that scales, over a dimension of
// three; and both with their dimensions in another order.
std::string Rows(std::string_view type, const std::vector<int64_t>& dims, int along = 2,
                 const std::vector<int64_t>& order = {0, 1, 2}) {
  auto shape = [&](const std::vector<int64_t>& of) {
    std::vector<int64_t> sizes;
    for (int64_t d : of) sizes.push_back(dims[static_cast<size_t>(d)]);
    return Cat(type, "[", Join(sizes, ","), "]");
  };
  std::vector<int64_t> others = {0, 1, 2};
  std::erase(others, along);
  const std::string all = shape({0, 1, 2}), by_row = shape(others), moved = shape(order);
  const std::string rows = Cat("dimensions={", along, "}"),
                    spread = Cat("dimensions={", Join(others, ","), "}");
  const std::string move = Cat("dimensions={", Join(order, ","), "}");
  return Cat("HloModule m\n", "add { a = ", type, "[] parameter(0) b = ", type,
             "[] parameter(1) ROOT s = ", type, "[] add(a, b) }\n", "max { a = ", type,
             "[] parameter(0) b = ", type, "[] parameter(1) ROOT s = ", type,
             "[] maximum(a, b) }\n", "ENTRY e {\n  x = ", all, " parameter(0)\n  low = ", type,
             "[] constant(-inf)\n", "  zero = ", type, "[] constant(0)\n  m = ", by_row,
             " reduce(x, low), ", rows, ", to_apply=max\n  ms = ", all, " broadcast(m), ", spread,
             "\n  d = ", all, " subtract(x, ms)\n  p = ", all, " exponential(d)\n  s = ", by_row,
             " reduce(p, zero), ", rows, ", to_apply=add\n  ss = ", all, " broadcast(s), ", spread,
             "\n  softmax = ", all, " divide(p, ss)\n  y = ", all, " parameter(1)\n  y2 = ", all,
             " multiply(y, y)\n  q = ", by_row, " reduce(y2, zero), ", rows,
             ", to_apply=add\n  r = ", by_row, " rsqrt(q)\n  rs = ", all, " broadcast(r), ", spread,
             "\n  scaled = ", all, " multiply(y, rs)\n  u = ", moved, " transpose(softmax), ", move,
             "\n  v = ", moved, " transpose(scaled), ", move, "\n  ROOT t = (", moved, ", ", moved,
             ") tuple(u, v)\n}\n");
}

TEST(RowKernels, RowsOfAllSizesGoThroughAPipeline) {
  Met met;
  for (std::string_view type : {"f32", "f64", "f16", "bf16"}) {
    for (int64_t outer : {1, 3}) {
      for (int64_t rows : {1, 2, 7}) {
        for (int64_t columns : {1, 40, 131}) {
          SCOPED_TRACE(Cat(type, " ", outer, " x ", rows, " x ", columns));
          auto module = ir::ParseOrDie(Rows(type, {outer, rows, columns}));
          for (int bytes : {64, 32}) Check(*module, bytes, Caches::kSmall, met);
          if (HasFatalFailure() || HasNonfatalFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(met.pipelined, 20);
  EXPECT_GT(met.staged, 20);
}

// Powers of a softmax that two later walks read, as in its gradient. In a pipeline the last walk
// would find another row's powers in the staged row.
constexpr std::string_view kPowersReadTwice = R"(HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) }
ENTRY e {
  x = f32[3,$r,$c] parameter(0)
  y = f32[3,$r,$c] parameter(1)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[3,$r] reduce(x, low), dimensions={2}, to_apply=max
  ms = f32[3,$r,$c] broadcast(m), dimensions={0,1}
  d = f32[3,$r,$c] subtract(x, ms)
  p = f32[3,$r,$c] exponential(d)
  s = f32[3,$r] reduce(p, zero), dimensions={2}, to_apply=add
  ss = f32[3,$r,$c] broadcast(s), dimensions={0,1}
  u = f32[3,$r,$c] add(y, ss)
  v = f32[3,$r,$c] multiply(u, p)
  t = f32[3,$r] reduce(v, zero), dimensions={2}, to_apply=add
  ts = f32[3,$r,$c] broadcast(t), dimensions={0,1}
  w = f32[3,$r,$c] subtract(u, ts)
  g = f32[3,$r,$c] multiply(w, p)
  ROOT r = (f32[3,$r,$c]) tuple(g)
})";

TEST(RowKernels, StagedRowsAreKeptForTwoWalks) {
  Met met;
  for (std::string_view rows : {"1", "2", "7"}) {
    for (std::string_view columns : {"40", "131"}) {
      SCOPED_TRACE(Cat(rows, " x ", columns));
      std::string text(kPowersReadTwice);
      for (auto [name, size] : {std::pair("$r", rows), std::pair("$c", columns)}) {
        for (size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, 2, size);
      }
      auto module = ir::ParseOrDie(text);
      for (int bytes : {64, 32}) Check(*module, bytes, Caches::kSmall, met);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
  EXPECT_GE(met.staged, 8);
}

// Of an item with many rows all rounds are of one kind.
// Differences from the mean, rounded to bf16, are made by the second walk and used again by the
// next one, or two; rows are whole vectors, shorter than one, or end within one.
TEST(RowKernels, ValuesAreKeptForTheNextWalk) {
  constexpr std::string_view kText = R"(HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  x = bf16[50,$c] parameter(0)
  zero = f32[] constant(0)
  w = f32[50,$c] convert(x)
  s = f32[50] reduce(w, zero), dimensions={1}, to_apply=add
  h = bf16[50] convert(s)
  mean = bf16[50,$c] broadcast(h), dimensions={0}
  d = bf16[50,$c] subtract(x, mean)
  q = bf16[50,$c] multiply(d, d)
  v = f32[50,$c] convert(q)
  t = f32[50] reduce(v, zero), dimensions={1}, to_apply=add
  u = bf16[50] convert(t)
  r = bf16[50,$c] broadcast(u), dimensions={0}
  o = bf16[50,$c] divide(d, r)
  f = f32[50,$c] convert(o)
  g = f32[50] reduce(f, zero), dimensions={1}, to_apply=add
  k = bf16[50] convert(g)
  l = bf16[50,$c] broadcast(k), dimensions={0}
  p = bf16[50,$c] multiply(d, l)
  ROOT tuple = (bf16[50,$c]) tuple($r)
})";
  Met met;
  for (std::string_view columns : {"5", "40", "64", "133", "300"}) {
    for (std::string_view result : {"o", "p"}) {
      SCOPED_TRACE(Cat(columns, " columns, ", result));
      std::string text(kText);
      for (auto [name, value] : {std::pair("$c", columns), std::pair("$r", result)}) {
        for (size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, 2, value);
      }
      auto module = ir::ParseOrDie(text);
      for (Caches caches : {Caches::kOwn, Caches::kSmall, Caches::kSmallButLast}) {
        for (int bytes : {64, 32}) Check(*module, bytes, caches, met);
        if (HasFatalFailure() || HasNonfatalFailure()) return;
      }
    }
  }
  EXPECT_GE(met.values, 12);
}

TEST(RowKernels, ManyRowsGoThroughAPipeline) {
  Met met;
  for (std::string_view type : {"f32", "bf16"}) {
    for (int64_t outer : {1, 3}) {
      for (int64_t columns : {40, 131}) {
        SCOPED_TRACE(Cat(type, " ", outer, " x 100 x ", columns));
        auto module = ir::ParseOrDie(Rows(type, {outer, 100, columns}));
        for (int bytes : {64, 32}) Check(*module, bytes, Caches::kSmallButLast, met);
        if (HasFatalFailure() || HasNonfatalFailure()) return;
      }
    }
  }
  EXPECT_GT(met.of_many_rows, 0);
}

TEST(RowKernels, ColumnsOfAllSizesGoByStrips) {
  Met met;
  for (std::string_view type : {"f32", "f64", "f16", "bf16"}) {
    for (const auto& dims : std::vector<std::vector<int64_t>>{
             {1, 70, 260}, {3, 33, 131}, {2, 64, 160}, {40, 33, 17}, {1, 260, 64}}) {
      SCOPED_TRACE(Cat(type, " ", Join(dims, " x ")));
      auto module = ir::ParseOrDie(Rows(type, dims, 1));
      for (int bytes : {64, 32, 16}) Check(*module, bytes, Caches::kForStrips, met);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
  EXPECT_GT(met.strips, 30);
  EXPECT_GT(met.kept, 30);
  EXPECT_EQ(met.by_columns, 0);
}

// Reductions of columns by known combiners, with what follows; and one of pairs, by a region.
std::string Columns(std::string_view type, std::string_view op, const std::vector<int64_t>& dims) {
  const std::string all = Cat(type, "[", Join(dims, ","), "]");
  const std::string by_column = Cat("[", dims[0], ",", dims[2], "]");
  const bool is_pred = type == "pred";
  return Cat(
      "HloModule m\nf { a = ", type, "[] parameter(0) b = ", type,
      "[] parameter(1) ROOT s = ", type, "[] ", op, "(a, b) }\n", "first { v = ", type,
      "[] parameter(0) i = s32[] parameter(1) w = ", type,
      "[] parameter(2) j = s32[] parameter(3)\n  less = pred[] compare(v, w), direction=LT\n",
      "  same = pred[] compare(v, w), direction=EQ\n",
      "  before = pred[] compare(i, j), direction=LT\n  tie = pred[] and(same, before)\n",
      "  keep = pred[] or(less, tie)\n  u = ", type, "[] select(keep, v, w)\n",
      "  k = s32[] select(keep, i, j)\n  ROOT t = (", type, "[], s32[]) tuple(u, k) }\n",
      "ENTRY e {\n  x = ", all, " parameter(0)\n  z = ", type, "[] constant(",
      is_pred ? "true" : "1", ")\n  far = s32[] constant(1000)\n  r = ", type, by_column,
      " reduce(x, z), dimensions={1}, to_apply=f\n  y = ", type, by_column,
      " parameter(1)\n  ry = ", type, by_column, " ", is_pred ? "xor" : "add", "(r, y)\n  i = s32[",
      Join(dims, ","), "] iota(), iota_dimension=1\n  p = (", type, by_column, ", s32", by_column,
      ") reduce(x, i, z, far), dimensions={1}, to_apply=first\n  v = ", type, by_column,
      " get-tuple-element(p), index=0\n  k = s32", by_column,
      " get-tuple-element(p), index=1\n  ROOT t = (", type, by_column, ", ", type, by_column,
      ", s32", by_column, ") tuple(ry, v, k)\n}\n");
}

TEST(RowKernels, ReductionsOfColumnsGoByStrips) {
  Met met;
  const std::vector<std::pair<std::string_view, std::string_view>> reductions = {
      {"f32", "add"},    {"f64", "maximum"},  {"bf16", "add"}, {"f16", "minimum"}, {"s8", "add"},
      {"u8", "maximum"}, {"s16", "multiply"}, {"u32", "xor"},  {"s64", "add"},     {"pred", "and"}};
  for (auto [type, op] : reductions) {
    for (const auto& dims : std::vector<std::vector<int64_t>>{
             {1, 40, 2100}, {3, 33, 1001}, {2, 150, 230}, {1, 4000, 70}}) {
      // Cut into chunks, sums are rounded otherwise.
      if (dims[1] == 4000 && op != "maximum" && op != "xor") continue;
      SCOPED_TRACE(Cat(type, " ", op, " ", Join(dims, " x ")));
      auto module = ir::ParseOrDie(Columns(type, op, dims));
      for (int bytes : {64, 32, 16}) Check(*module, bytes, Caches::kForStrips, met);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
  EXPECT_GT(met.strips, 100);
  EXPECT_GT(met.split, 3);
}

TEST(RowKernels, WhatIsMadeOfRowsIsTransposed) {
  Met met;
  for (std::string_view type : {"f32", "f64", "bf16"}) {
    for (int along : {1, 2}) {
      for (const std::vector<int64_t>& order :
           std::vector<std::vector<int64_t>>{{0, 2, 1}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}}) {
        for (const auto& dims : std::vector<std::vector<int64_t>>{
                 {1, 70, 65}, {3, 33, 131}, {18, 16, 32}, {2, 5, 40}, {20, 17, 19}}) {
          SCOPED_TRACE(
              Cat(type, " ", Join(dims, " x "), " along ", along, " as ", Join(order, ",")));
          auto module = ir::ParseOrDie(Rows(type, dims, along, order));
          for (int bytes : {64, 32}) Check(*module, bytes, Caches::kForStrips, met);
          if (HasFatalFailure() || HasNonfatalFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(met.strips, 100);
  EXPECT_GT(met.kept, 60);
  EXPECT_GT(met.by_columns, 30);
}

}  // namespace
}  // namespace kiln

// Row kernels: which groups become one, and random ones against the evaluator.

#include <gtest/gtest.h>

#include <cstring>

#include "base/strings.h"
#include "compiler/compiler.h"
#include "device/cpu/executable.h"
#include "hlo_test_util.h"
#include "interp/interpreter.h"
#include "kernel/build.h"
#include "kernel/fusible.h"
#include "literal_test_util.h"
#include "passes/pipelines.h"
#include "random_module.h"
#include "random_rows.h"

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
// pipeline, are asked for ahead, and written past the caches.
enum class Caches { kOwn, kSmall };

struct Met {
  int pipelined = 0, staged = 0, nontemporal = 0, prefetched = 0;
};

void Check(const ir::Module& module, int vector_bytes, Caches caches, Met& met) {
  std::vector<Literal> arguments = testing::RandomArguments(module, 3);
  auto expected = interp::Evaluate(module, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  target::Target target = target::HostCpuWithVectors(vector_bytes);
  if (caches == Caches::kSmall) target.cpu.l2_bytes = target.cpu.l3_bytes = 256;
  auto artefact = compiler::Compile(module.Clone(), target, {.verify = true});
  ASSERT_TRUE(artefact.ok()) << artefact.status().ToString();
  auto shared = std::make_shared<const plan::Artefact>(*std::move(artefact));
  for (const plan::ScheduledKernel& k : shared->program.kernels) {
    if (k.form != plan::ScheduledKernel::Form::kNest) continue;
    met.pipelined += k.cpu.pipelined;
    met.staged += !k.cpu.staged.empty();
    met.nontemporal += k.cpu.nontemporal;
    met.prefetched += !k.cpu.prefetches.empty();
  }
  runtime::Allocator allocator;
  runtime::ThreadPool pool(2);
  auto executable = device::CpuExecutable::Load(shared, allocator, pool);
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

// Softmax, whose rows of powers are staged, and a sum of squares that scales.
std::string Rows(std::string_view type, int64_t outer, int64_t rows, int64_t columns) {
  std::string all = Cat(type, "[", outer, ",", rows, ",", columns, "]");
  std::string by_row = Cat(type, "[", outer, ",", rows, "]");
  return Cat("HloModule m\n", "add { a = ", type, "[] parameter(0) b = ", type,
             "[] parameter(1) ROOT s = ", type, "[] add(a, b) }\n", "max { a = ", type,
             "[] parameter(0) b = ", type, "[] parameter(1) ROOT s = ", type,
             "[] maximum(a, b) }\n", "ENTRY e {\n  x = ", all, " parameter(0)\n  low = ", type,
             "[] constant(-inf)\n", "  zero = ", type, "[] constant(0)\n  m = ", by_row,
             " reduce(x, low), dimensions={2}, to_apply=max\n  ms = ", all,
             " broadcast(m), dimensions={0,1}\n  d = ", all, " subtract(x, ms)\n  p = ", all,
             " exponential(d)\n  s = ", by_row,
             " reduce(p, zero), dimensions={2}, to_apply=add\n  ss = ", all,
             " broadcast(s), dimensions={0,1}\n  softmax = ", all, " divide(p, ss)\n  y = ", all,
             " parameter(1)\n  y2 = ", all, " multiply(y, y)\n  q = ", by_row,
             " reduce(y2, zero), dimensions={2}, to_apply=add\n  r = ", by_row,
             " rsqrt(q)\n  rs = ", all, " broadcast(r), dimensions={0,1}\n  scaled = ", all,
             " multiply(y, rs)\n  ROOT t = (", all, ", ", all, ") tuple(softmax, scaled)\n}\n");
}

TEST(RowKernels, RowsOfAllSizesGoThroughAPipeline) {
  Met met;
  for (std::string_view type : {"f32", "f64", "f16", "bf16"}) {
    for (int64_t outer : {1, 3}) {
      for (int64_t rows : {1, 2, 7}) {
        for (int64_t columns : {1, 40, 131}) {
          SCOPED_TRACE(Cat(type, " ", outer, " x ", rows, " x ", columns));
          auto module = ir::ParseOrDie(Rows(type, outer, rows, columns));
          for (int bytes : {64, 32}) Check(*module, bytes, Caches::kSmall, met);
          if (HasFatalFailure() || HasNonfatalFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(met.pipelined, 20);
  EXPECT_GT(met.staged, 20);
}

}  // namespace
}  // namespace kiln

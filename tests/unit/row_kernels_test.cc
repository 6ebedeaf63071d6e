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
  for (const auto& i : module.entry()->instructions()) {
    count += kernel::RoleOf(*i) == kernel::FusionRole::kRows;
  }
  return count;
}

void Check(const ir::Module& module, int vector_bytes) {
  std::vector<Literal> arguments = testing::RandomArguments(module, 3);
  auto expected = interp::Evaluate(module, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  auto artefact =
      compiler::Compile(module.Clone(), target::HostCpuWithVectors(vector_bytes), {.verify = true});
  ASSERT_TRUE(artefact.ok()) << artefact.status().ToString();
  auto shared = std::make_shared<const plan::Artefact>(*std::move(artefact));
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
  const testing::Seeds seeds = testing::RandomSeeds(60);
  for (int seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    SCOPED_TRACE(Cat("seed ", seed));
    auto module = testing::RandomRowsModule(static_cast<uint64_t>(seed));
    for (int bytes : {64, 32, 16}) Check(*module, bytes);
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
}

}  // namespace
}  // namespace kiln

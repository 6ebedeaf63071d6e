// The kernels of seeded random graphs on the emulated GPU.

#include <gtest/gtest.h>

#include "gpu_random_check.h"
#include "ir/text.h"
#include "random_check.h"
#include "random_module.h"

namespace kiln {
namespace {

using Form = kernel::GpuNestSchedule::Form;

TEST(RandomGraphs, GpuKernelsAgreeWithEvaluator) {
  testing::Seeds seeds = testing::RandomSeeds(24);
  const testing::RandomCheck& check = testing::RandomCheckByName("gpu");
  testing::RandomGpuKernels gpu;
  for (int seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    auto module = check.make(seed);
    std::string problem =
        gpu.Check(*module, seed % 2 == 0 ? passes::CpuPipeline() : passes::OpByOpPipeline(), seed);
    ASSERT_EQ(problem, "") << testing::Report(check, seed, problem);
  }
  printf("  %d kernels, %d bundles\n", gpu.kernels, gpu.bundles);
  if (seeds.count < 24) return;
  EXPECT_GT(gpu.bundles, 0);
  for (Form form : {Form::kElementwise, Form::kTranspose, Form::kRowReduce, Form::kSerial}) {
    EXPECT_GT(gpu.forms[static_cast<int>(form)], 0) << static_cast<int>(form);
  }
}

}  // namespace
}  // namespace kiln

// Seeded random graphs on the emulated GPU.

#include <gtest/gtest.h>

#include "ir/text.h"
#include "random/check.h"
#include "random/module.h"

namespace kiln {
namespace {

TEST(RandomGraphs, EmulatedGpuAgreesWithEvaluator) {
  testing::Seeds seeds = testing::RandomSeeds(40);
  const testing::RandomCheck& check = testing::RandomCheckByName("gpu");
  for (int seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    auto module = check.make(seed);
    std::string problem = check.run(*module, static_cast<uint64_t>(seed));
    ASSERT_EQ(problem, "") << testing::Report(check, seed, problem);
  }
}

}  // namespace
}  // namespace kiln

// Derivatives of random graphs, and what of the op table they cover.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "random/check.h"
#include "random/gradients.h"
#include "random/module.h"

namespace kiln {
namespace {

constexpr int kSeeds = 40;

TEST(GradRandom, GraphsOfAllOps) {
  std::vector<int> seeds;
  if (std::getenv("KILN_RANDOM_SEEDS")) {
    const testing::Seeds range = testing::RandomSeeds(kSeeds);
    for (int k = 0; k < range.count; ++k) seeds.push_back(range.first + k);
  } else {
    seeds = testing::CoveringGradientSeeds(kSeeds);
  }
  const testing::RandomCheck& check = testing::RandomCheckByName("gradients");
  testing::GradientCoverage coverage;
  testing::DerivativeCounts counts;
  for (int seed : seeds) {
    const auto module = check.make(static_cast<uint64_t>(seed));
    const std::string problem =
        testing::CheckRandomDerivatives(*module, static_cast<uint64_t>(seed), counts);
    ASSERT_EQ(problem, "") << testing::Report(check, static_cast<uint64_t>(seed), problem);
    testing::AddGradientCoverage(*module, static_cast<uint64_t>(seed), coverage);
  }
  std::printf(
      "%s%zu graphs, %lld without finite values; %lld numbers compared, %lld next to kinks\n",
      testing::CoverageTable(coverage).c_str(), seeds.size(),
      static_cast<long long>(counts.undefined), static_cast<long long>(counts.compared),
      static_cast<long long>(counts.skipped));
  EXPECT_LT(counts.skipped * 50, counts.compared);
  EXPECT_LE(counts.undefined * 20, std::ssize(seeds));
  if (std::getenv("KILN_RANDOM_SEEDS")) return;
  for (Opcode opcode : testing::MissingFrom(coverage)) {
    ADD_FAILURE() << "no derivative of " << OpcodeName(opcode);
  }
}

}  // namespace
}  // namespace kiln

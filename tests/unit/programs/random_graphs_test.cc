// Random programs through the checks of random/check.h, and what the generator covers.

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/strings.h"
#include "random/check.h"
#include "random/coverage.h"
#include "random/module.h"
#include "random/repeats.h"
#include "support/compiled.h"
#include "support/labels.h"
#include "support/literal.h"

namespace kiln {
namespace {

using testing::Execution;
using testing::Report;

void RunSeeds(std::string_view name, const std::vector<int>& seeds) {
  const testing::RandomCheck& check = testing::RandomCheckByName(name);
  for (int seed : seeds) {
    std::string problem = check.run(*check.make(seed), seed);
    ASSERT_EQ(problem, "") << Report(check, seed, problem);
  }
}

// So many seeds, but for what the environment says.
void RunSeeds(std::string_view name, int count) {
  const testing::Seeds range = testing::RandomSeeds(count);
  std::vector<int> seeds;
  for (int k = 0; k < range.count; ++k) seeds.push_back(range.first + k);
  RunSeeds(name, seeds);
}

constexpr int kFastSeeds = 120;

TEST(RandomGraphs, CompiledAgreesWithEvaluator) {
  if (std::getenv("KILN_RANDOM_SEEDS")) return RunSeeds("compiled", kFastSeeds);
  RunSeeds("compiled", testing::CoveringSeeds(kFastSeeds));
}

TEST(RandomGraphs, FrozenArgumentsAreAsOthers) { RunSeeds("frozen", 120); }

TEST(RandomGraphs, TheSimplifierKeepsExactOpsToTheBit) { RunSeeds("simplifier", 60); }

TEST(RandomGraphs, ExactOpsAgreeToTheBitOnSpecialValues) { RunSeeds("special", 100); }

// No pair that the op table allows is missing in the programs of CompiledAgreesWithEvaluator.
TEST(RandomGraphs, CoverEveryOpOfEveryType) {
  testing::Coverage coverage;
  for (int seed : testing::CoveringSeeds(kFastSeeds)) {
    testing::AddCoverage(*testing::RandomModule(seed), coverage);
  }
  for (auto [opcode, type] : testing::MissingFrom(coverage)) {
    ADD_FAILURE() << "no " << OpcodeName(opcode) << " of " << TypeName(type);
  }
  if (HasFailure()) printf("%s", testing::CoverageTable(coverage).c_str());
}

constexpr int kRareSeeds = 40;

TEST(RandomGraphs, ComplexNumbersAndNarrowTypesAgreeWithEvaluator) {
  RunSeeds("types", 15);
  RunSeeds("types-gpu", 5);
}

TEST(SlowRandomGraphs, ComplexNumbersAndNarrowTypesAgreeWithEvaluator) {
  RunSeeds("types", testing::CoveringSeeds(kRareSeeds, testing::kRareTypesOptions));
  RunSeeds("types-gpu", 60);
  RunSeeds("types-passes", 60);
}

// No pair is missing in the programs of the slow test, either.
TEST(RandomGraphs, CoverEveryOpOfRareTypes) {
  const testing::RandomModuleOptions& options = testing::kRareTypesOptions;
  testing::Coverage coverage;
  for (int seed : testing::CoveringSeeds(kRareSeeds, options)) {
    testing::AddCoverage(*testing::RandomModule(seed, options), coverage);
  }
  for (auto [opcode, type] : testing::MissingFrom(coverage, options)) {
    ADD_FAILURE() << "no " << OpcodeName(opcode) << " of " << TypeName(type);
  }
  if (HasFailure()) printf("%s", testing::CoverageTable(coverage, options).c_str());
}

constexpr int kRepeatSeeds = 48;

TEST(RandomGraphs, RepeatedResultsAndGivenFusionsAgreeWithEvaluator) {
  if (std::getenv("KILN_RANDOM_SEEDS")) return RunSeeds("repeats", kRepeatSeeds);
  RunSeeds("repeats", testing::CoveringRepeatSeeds(kRepeatSeeds));
  RunSeeds("repeats-gpu", 16);
}

TEST(SlowRandomGraphs, RepeatedResultsAndGivenFusionsAgreeWithEvaluator) {
  RunSeeds("repeats", 400);
  RunSeeds("repeats-gpu", 160);
  RunSeeds("repeats-passes", 160);
}

// Every place has every kind of repeat in the programs of the fast test.
TEST(RandomGraphs, CoverEveryRepeatOfResults) {
  testing::RepeatCoverage coverage;
  for (int seed : testing::CoveringRepeatSeeds(kRepeatSeeds)) {
    testing::AddRepeatCoverage(*testing::RandomRepeatsModule(seed), coverage);
  }
  for (const std::string& missing : testing::MissingFrom(coverage))
    ADD_FAILURE() << "no " << missing;
  if (HasFailure()) printf("%s", testing::CoverageTable(coverage).c_str());
}

// Arrays that are worth several threads: as many as there are give the same bits as one.
TEST(RandomGraphs, LargeOnesAgreeOnAnyNumberOfThreads) {
  RunSeeds("threads", 24);
  if (HasFailure() || testing::IsTestOfGpu()) return;
  int shared = 0;
  const testing::RandomCheck& check = testing::RandomCheckByName("threads");
  for (int seed = 0; seed < 16; ++seed) {
    auto loaded = testing::Load(*check.make(seed), true);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    for (const kernel::ScheduledKernel& k : loaded->lowered->kernels) {
      shared += testing::TasksOf(k) > 1;
    }
  }
  EXPECT_GT(shared, 3);
}

KILN_LABEL(slow, "SlowRandomGraphs");
KILN_LABEL(gpu_sample, "RandomGraphs.CompiledAgreesWithEvaluator");

}  // namespace
}  // namespace kiln

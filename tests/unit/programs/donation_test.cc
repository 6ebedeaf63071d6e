// Random programs whose results are in the memory of arguments, donated or copied, against the
// evaluator.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "ir/text.h"
#include "random/module.h"
#include "random/repeats.h"
#include "support/compiled.h"
#include "support/labels.h"
#include "support/literal.h"

namespace kiln {
namespace {

using testing::Execution;

// Lets results be made in parameters of their shape; how many.
int AddAliases(ir::Module& module) {
  const ir::Computation& entry = *module.entry();
  std::vector<bool> taken(entry.parameters().size());
  const auto& results = entry.root()->shape().elements();
  for (size_t r = 0; r < results.size(); ++r) {
    for (size_t p = 0; p < taken.size(); ++p) {
      if (taken[p] || !(entry.parameter(static_cast<int64_t>(p))->shape() == results[r])) continue;
      taken[p] = true;
      ir::InputOutputAlias alias;
      alias.output_index = {static_cast<int64_t>(r)};
      alias.parameter = static_cast<int64_t>(p);
      module.aliases().push_back(std::move(alias));
      break;
    }
  }
  return static_cast<int>(module.aliases().size());
}

using Make = std::unique_ptr<ir::Module> (*)(uint64_t seed);

void RunDonated(Make make) {
  testing::Seeds seeds = testing::RandomSeeds(60);
  int aliases = 0, in_place = 0;
  for (int seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    auto module = make(static_cast<uint64_t>(seed));
    int added = AddAliases(*module);
    if (added == 0) continue;
    aliases += added;
    std::vector<Literal> arguments = testing::RandomArguments(*module, static_cast<uint64_t>(seed));
    auto expected = interp::Evaluate(*module, arguments);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    auto loaded = testing::Load(*module, seed % 3 != 0);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    const program::Program& program = loaded->artefact->program;
    const std::vector<int>& alias_of = program.signature.aliases;
    EXPECT_EQ(std::ranges::count_if(alias_of, [](int a) { return a >= 0; }), added);
    for (bool donate : {true, false}) {
      Execution run(*loaded->artefact);
      run.SetArguments(arguments);
      std::vector<void*> results(run.results().begin(), run.results().end());
      auto memory = [&](size_t r) {
        return const_cast<void*>(run.arguments()[static_cast<size_t>(alias_of[r])]);
      };
      for (size_t r = 0; r < results.size() && donate; ++r) {
        if (alias_of[r] >= 0) results[r] = memory(r);
      }
      Status status = loaded->executable->Run(run.arguments(), results);
      ASSERT_TRUE(status.ok()) << status.ToString();
      for (size_t r = 0; r < results.size() && donate; ++r) {
        auto bytes = static_cast<size_t>(program.signature.results[r].byte_size());
        if (alias_of[r] >= 0 && bytes > 0) std::memcpy(run.results()[r], memory(r), bytes);
      }
      ASSERT_EQ(testing::DifferenceOf(*module, *expected, run.Result(), 1e-3), "")
          << "seed " << seed << (donate ? ", donated\n" : ", copied\n") << ir::ToHloText(*module)
          << program.ToString();
    }
    // What is made in place is not copied there at last.
    bool copied = false;
    for (const program::Step& step : program.steps) {
      const auto* copy = std::get_if<program::Copy>(&step.what);
      if (!copy) continue;
      const program::Allocation& to = program.allocations[copy->to.allocation];
      copied |= to.kind == program::Allocation::Kind::kResult && alias_of[to.number] >= 0;
    }
    in_place += !copied;
  }
  if (seeds.count < 60) return;
  EXPECT_GT(aliases, 20);
  EXPECT_GT(in_place, 5);
}

TEST(Donation, RandomProgramsAgreeWithEvaluator) {
  RunDonated([](uint64_t seed) { return testing::RandomModule(seed); });
}

TEST(Donation, RepeatedResultsAgreeWithEvaluator) { RunDonated(testing::RandomRepeatsModule); }

KILN_LABEL(gpu_sample, "Donation");

}  // namespace
}  // namespace kiln

#include "session/units.h"

#include <gtest/gtest.h>

#include <random>

#include "interp/interpreter.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "random/fodder.h"
#include "random/module.h"
#include "session/subgraph.h"
#include "support/hlo.h"
#include "support/literal.h"

namespace kiln::session {
namespace {

using ir::Instruction;

// Runs the units by the evaluator; the fetches, or the first failure.
Result<std::vector<Literal>> Evaluate(const Units& units, const std::vector<Literal>& feeds) {
  IdVector<ValueId, std::optional<Literal>> values(units.values.size());
  for (size_t i = 0; i < feeds.size(); ++i) values[units.feeds[i]] = feeds[i];
  for (const Unit& unit : units.units) {
    KILN_RETURN_IF_ERROR(ir::Verify(*unit.module));
    std::vector<Literal> arguments;
    for (ValueId value : unit.inputs) {
      if (!values[value]) return Internal("'", units.values[value].name, "' is not there");
      arguments.push_back(*values[value]);
    }
    KILN_ASSIGN_OR_RETURN(Literal result, interp::Evaluate(*unit.module, arguments));
    for (size_t i = 0; i < unit.outputs.size(); ++i) values[unit.outputs[i]] = result.elements()[i];
    for (ValueId value : unit.last_uses) values[value].reset();
  }
  std::vector<Literal> fetches;
  for (ValueId value : units.fetches) {
    if (!values[value]) return Internal("'", units.values[value].name, "' is not there");
    fetches.push_back(*values[value]);
  }
  return fetches;
}

struct Names {
  std::vector<std::string> feeds, fetches;
};

// All parameters are fed, and some other values; some arrays are fetched.
Names RandomNames(const ir::Module& module, std::mt19937_64& random) {
  Names names;
  for (const Instruction* i : module.entry()->instructions()) {
    if (!i->shape().is_array()) continue;
    if (i->opcode() == Opcode::kParameter) names.feeds.push_back(i->name());
    if (random() % 4 == 0) names.fetches.push_back(i->name());
  }
  return names;
}

// Random devices, and clusters by random marks.
struct RandomParts {
  RandomParts(const ir::Computation& entry, std::mt19937_64& random) : placement(entry) {
    placement.devices = {
        {"CPU:0", false, false}, {"XLA_CPU:0", true, false}, {"GPU:0", false, true}};
    for (const Instruction* i : entry.instructions()) {
      placement.device_of[i] = static_cast<int32_t>(random() % 3);
      if (random() % 3 != 0) marks[i].compile = random() % 4 != 0;
    }
    options.level = random() % 2 ? JitLevel::kOn : JitLevel::kExplicit;
    options.cpu_global_jit = random() % 2 == 0;
    options.min_cluster_size = 1 + static_cast<int64_t>(random() % 4);
    options.max_cluster_size = 1 + static_cast<int64_t>(random() % 12);
  }
  Result<Clustering> Find(const ir::Computation& entry) {
    return FindClusters({.entry = entry,
                         .placement = placement,
                         .options = options,
                         .mark = [this](const Instruction& i) { return marks[&i]; },
                         .why_not_compilable = {},
                         .control_edges = {}});
  }

  Placement placement;
  ClusterOptions options;
  std::unordered_map<const Instruction*, JitMark> marks;
};

TEST(Units, ComputeTheSameAsTheGraph) {
  const testing::Seeds seeds = testing::RandomSeeds(300);
  size_t clusters = 0;
  for (int seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    auto module =
        seed % 3 == 0 ? testing::ControlFodder(random()) : testing::RandomModule(random());
    const Names names = RandomNames(*module, random);
    auto part = Subgraph(*module, names.feeds, names.fetches);
    ASSERT_TRUE(part.ok()) << part.status().ToString();
    CopyResultsWithoutOp(**part);
    const std::vector<Literal> arguments = testing::RandomArguments(**part, 7);
    auto expected = interp::Evaluate(**part, arguments);
    if (!expected.ok()) continue;
    RandomParts parts(*(*part)->entry(), random);
    auto clustering = parts.Find(*(*part)->entry());
    ASSERT_TRUE(clustering.ok()) << seed << clustering.status().ToString();
    clusters += clustering->clusters().size();
    const std::string text = ir::ToHloText(**part);
    auto units = SplitIntoUnits(**part, parts.placement, *clustering);
    ASSERT_TRUE(units.ok()) << seed << units.status().ToString();
    auto actual = Evaluate(*units, arguments);
    ASSERT_TRUE(actual.ok()) << seed << ": " << actual.status().ToString() << "\n" << text;
    ASSERT_EQ(actual->size(), names.fetches.size());
    for (size_t i = 0; i < actual->size(); ++i) {
      EXPECT_EQ(testing::BitDifference(expected->elements()[i], (*actual)[i]), "")
          << seed << " " << names.fetches[i] << "\n"
          << text;
    }
  }
  EXPECT_GT(clusters, static_cast<size_t>(seeds.count));
}

// a and c are on one device, b on the other; d needs both.
constexpr char kTwoDevices[] = R"(HloModule m
ENTRY e { x = f32[4] parameter(0)
  a = f32[4] negate(x)
  b = f32[4] exponential(a)
  c = f32[4] abs(a)
  d = f32[4] add(b, c)
  ROOT t = (f32[4]) tuple(d) })";

// The module's units, without clusters, where `b` is on device 1.
Units UnitsOf(const ir::Module& module, int32_t device_of_b) {
  const ir::Computation& entry = *module.entry();
  Placement placement(entry);
  placement.devices = {{"CPU:0", false, false}, {"CPU:1", false, false}};
  for (const Instruction* i : entry.instructions()) {
    placement.device_of[i] = i->name() == "b" ? device_of_b : 0;
  }
  const ClusterOptions options{.level = JitLevel::kOff};
  auto clustering = FindClusters({.entry = entry,
                                  .placement = placement,
                                  .options = options,
                                  .mark = {},
                                  .why_not_compilable = {},
                                  .control_edges = {}});
  EXPECT_TRUE(clustering.ok()) << clustering.status().ToString();
  auto units = SplitIntoUnits(module, placement, *clustering);
  EXPECT_TRUE(units.ok()) << units.status().ToString();
  return *std::move(units);
}

TEST(Units, OpsOfOneDeviceAreOneUnitUntilTheyNeedAnother) {
  auto module = ir::ParseOrDie(kTwoDevices);
  const Units units = UnitsOf(*module, 1);
  ASSERT_EQ(units.units.size(), 3u);
  auto describe = [&](int number) {
    const Unit& unit = units.units[UnitId(number)];
    std::string text = Cat(unit.device, ":");
    for (ValueId value : unit.inputs) text += " " + units.values[value].name;
    text += " ->";
    for (ValueId value : unit.outputs) text += " " + units.values[value].name;
    text += " |";
    for (ValueId value : unit.last_uses) text += " " + units.values[value].name;
    return text;
  };
  EXPECT_EQ(describe(0), "0: x -> a c | x");
  EXPECT_EQ(describe(1), "1: a -> b | a");
  EXPECT_EQ(describe(2), "0: b c -> d | c b");
}

TEST(Units, OneDeviceIsOneUnit) {
  auto module = ir::ParseOrDie(kTwoDevices);
  const Units units = UnitsOf(*module, 0);
  ASSERT_EQ(units.units.size(), 1u);
  EXPECT_EQ(units.units.front().inputs, units.feeds);
  EXPECT_EQ(units.units.front().outputs, units.fetches);
}

}  // namespace
}  // namespace kiln::session

#include "session/outline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "interp/interpreter.h"
#include "ir/verifier.h"
#include "random/module.h"
#include "support/hlo.h"
#include "support/literal.h"

namespace kiln::session {
namespace {

using ir::Instruction;

// Everything on one device that compiles, but for ops with a mark.
struct Setting {
  explicit Setting(const ir::Module& module) : placement(*module.entry()) {
    placement.devices = {{"GPU:0", false, true}, {"GPU:1", false, true}};
    for (const Instruction* i : module.entry()->instructions()) placement.device_of[i] = 0;
    options.level = JitLevel::kOn;
    options.min_cluster_size = 1;
  }
  Clustering Find(const ir::Module& module) {
    ClusterInput input = {.entry = *module.entry(),
                          .placement = placement,
                          .options = options,
                          .mark =
                              [&](const Instruction& i) {
                                JitMark mark;
                                if (apart.contains(&i)) mark.compile = false;
                                return mark;
                              },
                          .why_not_compilable = nullptr,
                          .control_edges = {}};
    Result<Clustering> clustering = FindClusters(input);
    EXPECT_TRUE(clustering.ok()) << clustering.status().ToString();
    return *std::move(clustering);
  }

  Placement placement;
  ClusterOptions options;
  std::set<const Instruction*> apart;
};

TEST(Outline, ParametersInTheOrderOfUseAndResultsOfUsesOutside) {
  auto module = ir::ParseOrDie(R"(HloModule m
f { p = f32[2] parameter(0)
  ROOT q = f32[2] tanh(p) }
ENTRY e { a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  c = f32[] constant(2)
  big = f32[2048] iota(), iota_dimension=0
  k = f32[2] broadcast(c), dimensions={}
  x = f32[2] subtract(b, a), metadata={op_name="scope/x"}
  y = f32[2] multiply(x, k)
  w = f32[2] call(y), to_apply=f
  u = f32[2] sine(y)
  v = f32[2] add(u, w)
  h = f32[] constant(3)
  s = f32[2] broadcast(h), dimensions={}
  t = f32[2] broadcast(c), dimensions={}
  z = f32[2] add(v, t)
  ROOT r = (f32[2], f32[2]) tuple(z, s) })");
  Setting setting(*module);
  setting.apart = {ir::FindInstruction(*module, "u"), ir::FindInstruction(*module, "big")};
  Clustering clustering = setting.Find(*module);
  const Instruction* fetched[] = {ir::FindInstruction(*module, "x")};
  std::vector<OutlinedPart> parts = OutlineClusters(clustering, fetched);
  ASSERT_EQ(parts.size(), 3u);
  std::string text;
  for (const OutlinedPart& part : parts) {
    EXPECT_TRUE(ir::Verify(*part.module).ok()) << ir::Verify(*part.module).ToString();
    text += Cat(part.module->name(), ":");
    for (const Instruction* i : part.arguments) text += Cat(" ", i->name());
    text += " ->";
    for (const Instruction* i : part.results) text += Cat(" ", i->name());
    text += "\n";
  }
  EXPECT_EQ(text,
            "cluster_0: b a -> x y\n"
            "cluster_1: y u -> z\n"
            "cluster_2: -> s\n");
  EXPECT_EQ(ir::ToHloText(*parts[0].module->entry()),
            R"(%cluster_0 (b: f32[2], a: f32[2]) -> (f32[2], f32[2]) {
  %c = f32[] constant(2)
  %k = f32[2]{0} broadcast(%c), dimensions={}
  %b = f32[2]{0} parameter(0)
  %a = f32[2]{0} parameter(1)
  %x = f32[2]{0} subtract(%b, %a), metadata={op_name="scope/x"}
  %y = f32[2]{0} multiply(%x, %k)
  ROOT %results = (f32[2]{0}, f32[2]{0}) tuple(%x, %y)
})");
  // With a computation, and its own copy of the constant.
  EXPECT_EQ(ir::ToHloText(*parts[1].module),
            R"(HloModule cluster_1, entry_computation_layout={(f32[2]{0}, f32[2]{0})->(f32[2]{0})}

%f (p: f32[2]) -> f32[2] {
  %p = f32[2]{0} parameter(0)
  ROOT %q = f32[2]{0} tanh(%p)
}

ENTRY %cluster_1 (y: f32[2], u: f32[2]) -> (f32[2]) {
  %y = f32[2]{0} parameter(0)
  %w = f32[2]{0} call(%y), to_apply=%f
  %u = f32[2]{0} parameter(1)
  %v = f32[2]{0} add(%u, %w)
  %c = f32[] constant(2)
  %t = f32[2]{0} broadcast(%c), dimensions={}
  %z = f32[2]{0} add(%v, %t)
  ROOT %results = (f32[2]{0}) tuple(%z)
}

)");
}

// Runs a graph as its clusters and the ops outside of them, each when its operands are there.
class Runner {
 public:
  Runner(const ir::Module& module, const Clustering& clustering)
      : clustering_(clustering), entry_(*module.entry()) {
    std::vector<const Instruction*> fetched(entry_.root()->operands().begin(),
                                            entry_.root()->operands().end());
    parts_ = OutlineClusters(clustering, fetched);
  }

  // The values of the root's operands that are arrays.
  std::vector<Literal> Run(const std::vector<Literal>& arguments) {
    std::set<size_t> left;
    for (size_t k = 0; k < parts_.size(); ++k) left.insert(k);
    for (bool found = true; found;) {
      found = false;
      for (const Instruction* i : entry_.instructions()) {
        if (clustering_.ClusterOf(i) < 0 && !values_.contains(i) && RunOp(*i, arguments)) {
          found = true;
        }
      }
      for (size_t k : std::set<size_t>(left)) {
        if (RunPart(parts_[k])) left.erase(k), found = true;
      }
    }
    EXPECT_TRUE(left.empty());
    std::vector<Literal> fetched;
    for (const Instruction* operand : entry_.root()->operands()) {
      if (operand->shape().is_array()) fetched.push_back(values_.at(operand));
    }
    return fetched;
  }

 private:
  bool RunOp(const Instruction& i, const std::vector<Literal>& arguments) {
    if (i.opcode() == Opcode::kParameter) {
      values_.emplace(&i, arguments[i.attributes().Int(Attr::kParameterNumber)]);
      return true;
    }
    std::vector<const Literal*> operands;
    for (const Instruction* operand : i.operands()) {
      auto it = values_.find(operand);
      if (it == values_.end()) return false;
      operands.push_back(&it->second);
    }
    Result<Literal> value = interp::EvaluateInstruction(i, operands);
    EXPECT_TRUE(value.ok()) << value.status().ToString();
    values_.emplace(&i, *std::move(value));
    return true;
  }
  bool RunPart(const OutlinedPart& part) {
    std::vector<Literal> arguments;
    for (const Instruction* argument : part.arguments) {
      auto it = values_.find(argument);
      if (it == values_.end()) return false;
      arguments.push_back(it->second);
    }
    Status valid = ir::Verify(*part.module);
    EXPECT_TRUE(valid.ok()) << valid.ToString();
    Result<Literal> result = interp::Evaluate(*part.module, arguments);
    EXPECT_TRUE(result.ok()) << result.status().ToString();
    for (size_t k = 0; k < part.results.size(); ++k) {
      EXPECT_TRUE(part.results[k]->shape().is_array());
      EXPECT_TRUE(values_.emplace(part.results[k], result->elements()[k]).second);
    }
    return true;
  }

  const Clustering& clustering_;
  const ir::Computation& entry_;
  std::vector<OutlinedPart> parts_;
  std::map<const Instruction*, Literal> values_;
};

TEST(Outline, ClustersOfRandomModulesComputeTheSame) {
  size_t clusters = 0, results = 0;
  const testing::Seeds seeds = testing::RandomSeeds(150);
  for (int seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    testing::RandomModuleOptions options;
    options.max_elements = 500;
    auto module = testing::RandomModule(static_cast<uint64_t>(seed), options);
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    Setting setting(*module);
    const uint64_t apart = random() % 40;
    for (const Instruction* i : module->entry()->instructions()) {
      if (random() % 100 < apart) setting.apart.insert(i);
      if (random() % 100 < apart / 2) setting.placement.device_of[i] = 1;
    }
    Clustering clustering = setting.Find(*module);
    clusters += clustering.clusters().size();
    std::vector<Literal> arguments = testing::RandomArguments(*module, static_cast<uint64_t>(seed));
    Result<Literal> expected = interp::Evaluate(*module, arguments);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    std::erase_if(expected->elements(), [](const Literal& l) { return !l.shape().is_array(); });
    EXPECT_EQ(Join(Runner(*module, clustering).Run(arguments), "\n"),
              Join(expected->elements(), "\n"));
    results += expected->elements().size();
    if (HasFailure()) FAIL() << "seed " << seed << "\n" << ir::ToHloText(*module);
  }
  EXPECT_GT(clusters, static_cast<size_t>(seeds.count));
  EXPECT_GT(results, static_cast<size_t>(seeds.count));
}

// Each of many functions, all called by the entry, calls the one before it.
TEST(Outline, CopiesEachCalleeOnce) {
  std::string functions = "HloModule m\nf0 { p = f32[] parameter(0)\n ROOT n = f32[] negate(p) }\n";
  std::string entry = "ENTRY e { c0 = f32[] parameter(0)\n";
  for (int k = 1; k <= 100; ++k) {
    functions += Cat("f", k, " { p", k, " = f32[] parameter(0)\n ROOT r", k, " = f32[] call(p", k,
                     "), to_apply=f", k - 1, " }\n");
    entry += Cat(k == 100 ? "ROOT c" : "c", k, " = f32[] call(c", k - 1, "), to_apply=f", k, "\n");
  }
  auto module = ir::ParseOrDie(Cat(functions, entry, "}"));
  std::vector<Instruction*> all(module->entry()->instructions().begin(),
                                module->entry()->instructions().end());
  Instruction* last = all.back();
  OutlinedPart part =
      Outliner(*module->entry()).Outline("part", std::span(all).subspan(1), {all.front()}, {last});
  EXPECT_TRUE(ir::Verify(*part.module).ok());
  EXPECT_EQ(part.module->computations().size(), 102u);
  for (const Instruction* i : all) {
    EXPECT_NE(ir::FindInstruction(*part.module->entry(), i->name()), nullptr) << i->name();
  }
}

}  // namespace
}  // namespace kiln::session

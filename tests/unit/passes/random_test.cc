// Every registered pass by itself, and the pipelines, on random modules: the results stay.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "passes/pipelines.h"
#include "random/fodder.h"
#include "random/module.h"
#include "random/rows.h"
#include "support/hlo.h"
#include "support/labels.h"
#include "support/literal.h"

namespace kiln::passes {
namespace {

using testing::BitDifference;
using testing::ControlFodder;
using testing::Difference;
using testing::Fodder;
using testing::RandomArguments;
using testing::RandomModule;
using testing::RandomRowsModule;
using testing::SpecialArguments;

// Sums in another order and powers as products are what the algebraic simplifier may change, chains
// take the sum of a product by its rows, and convolutions become products of matrices, which are
// summed as these are; the other passes move work, and never a bit.
bool KeepsBits(std::string_view pass) {
  constexpr std::string_view kOthers[] = {
      "algebraic-simplifier", "chain-fusion", "cpu", "gpu", "expand-ops", "op-by-op",
      "unroll-reductions"};
  return std::ranges::find(kOthers, pass) == std::end(kOthers);
}

Pipeline PipelineOf(std::string_view name) {
  for (const NamedPipeline& pipeline : AllPipelines()) {
    if (pipeline.name == name) return pipeline.get();
  }
  return {{.passes = {name}}};
}

// Runs a pass or a pipeline, with the verifier after each pass, and compares what the evaluator
// makes of the module. Returns whether anything changed.
bool Check(std::string_view name, const ir::Module& module, const std::vector<Literal>& arguments,
           bool exact, int memory_effort = 0) {
  auto changed_module = module.Clone();
  PassContext context;
  context.verify = true;
  context.memory_effort = memory_effort;
  bool changed = false;
  context.after_pass = [&](const PassEvent& event) { changed |= event.changed; };
  std::string before = ir::ToHloText(*changed_module);
  Status status = RunPipeline("test", PipelineOf(name), *changed_module, context);
  EXPECT_TRUE(status.ok()) << status.ToString() << "\n" << before;
  if (!status.ok()) return false;
  std::string after = ir::ToHloText(*changed_module);
  if (!changed) {
    EXPECT_EQ(before, after) << "changed, and says it did not";
    return false;
  }
  // A loop that a pass made endless is found.
  const interp::Options options{.max_work = 640'000'000};
  auto expected = interp::Evaluate(module, arguments, options);
  auto actual = interp::Evaluate(*changed_module, arguments, options);
  EXPECT_TRUE(expected.ok()) << expected.status().ToString();
  EXPECT_TRUE(actual.ok()) << actual.status().ToString() << "\n" << after;
  if (!expected.ok() || !actual.ok()) return true;
  // The bound of a sum of some thousand f32, and of a power.
  EXPECT_EQ(exact ? BitDifference(*expected, *actual)
                  : testing::DifferenceOf(module, *expected, *actual, 1e-5),
            "")
      << before << "\nbecame\n"
      << after;
  return true;
}

// A value by way of a fusion that only hands it on.
void HandOn(ir::Module& module, ir::Instruction* value) {
  ir::Computation* fused = module.AddComputation("handed_on");
  fused->set_root(fused->Create({.opcode = Opcode::kParameter,
                                 .attributes = {{Attr::kParameterNumber, int64_t{0}}},
                                 .shape = value->shape(),
                                 .name = "x"}));
  ir::Instruction* fusion = value->parent()->Create({.opcode = Opcode::kFusion,
                                                     .operands = {value},
                                                     .attributes = {{Attr::kFusionKind, "kLoop"}},
                                                     .called = {fused},
                                                     .shape = value->shape()});
  value->parent()->ReplaceAllUses(value, fusion);
  value->parent()->SetOperands(fusion, std::vector<ir::Instruction*>{value});
}

// The random module of a seed as text may hold it: some of it is fused already.
std::unique_ptr<ir::Module> FusedModule(uint64_t seed) {
  auto module = seed % 3 == 0 ? RandomRowsModule(seed) : RandomModule(seed);
  PassContext context;
  const Pipeline fuse = {{.passes = {"row-fusion", "fusion"}}};
  if (seed % 4 != 0) EXPECT_TRUE(RunPipeline("fuse", fuse, *module, context).ok());
  std::mt19937_64 random(seed);
  std::vector<ir::Instruction*> values;
  for (ir::Instruction* i : module->entry()->instructions()) {
    if (i->shape().is_array() && !i->users().empty()) values.push_back(i);
  }
  for (int k = 0; k < 3 && !values.empty(); ++k) HandOn(*module, values[random() % values.size()]);
  module->entry()->Reorder(module->entry()->PostOrder());
  return module;
}

std::vector<std::string_view> Names() {
  std::vector<std::string_view> names;
  for (const Pass& pass : AllPasses()) {
    // These modules have no tokens, calls, complex numbers, types under a byte, bounded sizes,
    // frozen arguments or large filters.
    if (pass.name == "split-frozen" || pass.name == "expand-tokens" ||
        pass.name == "prepare-calls" || pass.name == "outline-grids" ||
        pass.name == "expand-complex" || pass.name == "expand-narrow" ||
        pass.name == "expand-bounded" || pass.name == "transform-convolutions") {
      continue;
    }
    names.push_back(pass.name);
  }
  for (const NamedPipeline& pipeline : AllPipelines()) names.push_back(pipeline.name);
  return names;
}

// A concatenation of more operands than one kernel takes, of slices of all sizes, empty ones too.
std::unique_ptr<ir::Module> WideConcatenate(uint64_t seed) {
  const auto operands = static_cast<int64_t>(129 + 37 * seed % 300);
  std::string text = "HloModule m\nENTRY e {\n x = f32[7,5] parameter(0)\n", names;
  int64_t size = 0;
  for (int64_t k = 0; k < operands; ++k) {
    const auto length = static_cast<int64_t>((seed + 11 * k) % 4), first = k % 4;
    text += Cat(" s", k, " = f32[", length, ",5] slice(x), slice={[", first, ":", first + length,
                "], [0:5]}\n");
    names += Cat(k > 0 ? ", s" : "s", k);
    size += length;
  }
  text += Cat(" ROOT c = f32[", size, ",5] concatenate(", names, "), dimensions={0}\n}\n");
  return ir::ParseOrDie(text);
}

// A reduction over arrays side by side, by itself or behind a product, sometimes of another
// dimension, too, and sometimes of a stack that is needed for something else.
std::unique_ptr<ir::Module> Stacked(uint64_t seed, bool exact) {
  constexpr const char* kTypes[] = {"s32", "u8", "f32", "bf16"};
  constexpr const char* kOps[] = {"maximum", "minimum", "add", "multiply"};
  const std::string type = kTypes[seed % (exact ? 2 : 4)];
  const bool is_first = seed / 4 % 2 == 0, scales = seed / 8 % 2 == 0, is_used = seed % 5 == 0;
  const bool reduces_all = seed % 3 == 0;
  const auto columns = static_cast<int64_t>(1 + seed / 16 % 18);
  auto array = [&](int64_t size) {
    return is_first ? Cat(type, "[", size, ",7]") : Cat(type, "[7,", size, "]");
  };
  std::string text = Cat("HloModule m\nf { a = ", type, "[] parameter(0)\n b = ", type,
                         "[] parameter(1)\n ROOT c = ", type, "[] ", kOps[seed / 32 % 4],
                         "(a, b) }\nENTRY e {\n"),
              names;
  for (int64_t k = 0; k < columns; ++k) {
    text += Cat(" x", k, " = ", array(1), " parameter(", k, ")\n");
    names += Cat(k > 0 ? ", x" : "x", k);
  }
  const std::string result = reduces_all ? Cat(type, "[]") : Cat(type, "[7]");
  text +=
      Cat(" s = ", array(columns), " concatenate(", names, "), dimensions={", is_first ? 0 : 1,
          "}\n w = ", type, "[", columns, "] parameter(", columns, ")\n b = ", array(columns),
          " broadcast(w), dimensions={", is_first ? 0 : 1, "}\n m = ", array(columns),
          " multiply(s, b)\n i = ", type, "[] parameter(", columns + 1, ")\n r = ", result,
          " reduce(", scales ? "m" : "s", ", i), dimensions={",
          reduces_all ? "0,1"
          : is_first  ? "0"
                      : "1",
          "}, to_apply=f\n ROOT t = (", result, ", ",
          is_used ? Cat(array(columns), ") tuple(r, s)\n}\n") : Cat(type, "[]) tuple(r, i)\n}\n"));
  return ir::ParseOrDie(text);
}

// A sum with an extremum and a comparison of any direction, and sometimes another use.
std::unique_ptr<ir::Module> Rectified(uint64_t seed) {
  constexpr const char* kDirections[] = {"EQ", "NE", "GT", "GE", "LT", "LE"};
  const bool is_max = seed % 2 == 0, swaps = seed / 2 % 2 == 0, is_zero = seed / 4 % 2 == 0;
  const std::string y = is_zero ? "z" : "b";
  return ir::ParseOrDie(Cat(
      "HloModule m\nENTRY e {\n a = f32[24] parameter(0)\n b = f32[24] parameter(1)\n",
      " zero = f32[] constant(0)\n z = f32[24] broadcast(zero), dimensions={}\n",
      " x = f32[24] add(a, b)\n m = f32[24] ", is_max ? "maximum" : "minimum", "(x, ", y,
      ")\n p = pred[24] compare(", swaps ? Cat(y, ", x") : Cat("x, ", y),
      "), direction=", kDirections[seed / 8 % 6], "\n g = f32[24] select(p, a, z)\n",
      " ROOT t = (f32[24], f32[24], f32[24]) tuple(m, g, ", seed % 7 == 0 ? "x" : "a", ")\n}\n"));
}

// Layers of products, as slight as large arrays can have them, whose values are read again in the
// opposite order.
std::unique_ptr<ir::Module> LateUses(uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr const char* kFunctions[] = {"sine", "tanh", "logistic", "negate", "abs"};
  constexpr const char* kShape = "f32[16384,1] ";
  constexpr int kLayers = 9;
  std::string text =
      Cat("HloModule m\nENTRY e {\n v0 = ", kShape, "parameter(0)\n w = f32[1,1] parameter(1)\n");
  std::vector<std::string> values;
  for (int k = 0; k < kLayers; ++k) {
    std::string x = Cat("v", k);
    for (uint64_t n = random() % 3 + 1; n > 0; --n) {
      const std::string name = Cat("x", values.size());
      if (random() % 3 == 0 && !values.empty()) {
        text += Cat(" ", name, " = ", kShape, "maximum(", x, ", ", values.back(), ")\n");
      } else {
        text += Cat(" ", name, " = ", kShape, kFunctions[random() % 5], "(", x, ")\n");
      }
      values.push_back(x = name);
    }
    text += Cat(" v", k + 1, " = ", kShape, "dot(", x,
                ", w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n");
  }
  std::string sum = Cat("v", kLayers);
  for (size_t k = values.size(); k-- > 0;) {
    if (random() % 3 == 0) continue;
    text += Cat(" y", k, " = ", kShape, random() % 2 == 0 ? "add(" : "multiply(", sum, ", ",
                values[k], ")\n");
    sum = Cat("y", k);
  }
  text += Cat(" ROOT t = (f32[16384,1], f32[16384,1]) tuple(", sum, ", ",
              values[random() % values.size()], ")\n}\n");
  return ir::ParseOrDie(text);
}

// A loop that counts up by any step, over two arrays whose next values are made from elements at
// other places of both.
std::unique_ptr<ir::Module> TurningLoop(uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::string array = "f32[64,80]", state = Cat("(s32[], ", array, ", ", array, ")");
  const int64_t step = 1 + static_cast<int64_t>(random() % 3);
  const auto start = static_cast<int64_t>(random() % 4);
  const int64_t end = start + static_cast<int64_t>(random() % 20);
  std::vector<std::string> values = {"a", "b"};
  std::string body;
  auto any = [&] { return values[random() % values.size()]; };
  for (int k = 0; k < 5; ++k) {
    const std::string x = any(), name = Cat("v", k);
    const auto at = static_cast<int64_t>(1 + random() % 79);
    switch (random() % 4) {
      case 0:
        body += Cat(" l", k, " = f32[64,", at, "] slice(", x, "), slice={[0:64], [0:", at, "]} r",
                    k, " = f32[64,", 80 - at, "] slice(", x, "), slice={[0:64], [", at, ":80]} ",
                    name, " = ", array, " concatenate(r", k, ", l", k, "), dimensions={1}\n");
        break;
      case 1:
        body += Cat(" ", name, " = ", array, " reverse(", x, "), dimensions={0}\n");
        break;
      case 2:
        body += Cat(" ", name, " = ", array, " negate(", x, ")\n");
        break;
      default:
        body += Cat(" ", name, " = ", array, " maximum(", x, ", ", any(), ")\n");
    }
    values.push_back(name);
  }
  return ir::ParseOrDie(Cat(
      "HloModule turning\nbody { s = ", state,
      " parameter(0) i = s32[] get-tuple-element(s), index=0", " a = ", array,
      " get-tuple-element(s), index=1 b = ", array,
      " get-tuple-element(s), index=2 by = s32[] constant(", step, ") j = s32[] add(i, by)\n", body,
      " ROOT t = ", state, " tuple(j, ", any(), ", ", values.back(), ") }\n", "condition { s = ",
      state, " parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(", end,
      ") ROOT p = pred[] compare(i, n), direction=LT }\n", "ENTRY e { x = ", array,
      " parameter(0) y = ", array, " parameter(1) k = s32[] constant(", start, ") s = ", state,
      " tuple(k, x, y) ROOT w = ", state, " while(s), condition=condition, body=body }\n"));
}

class PassesRandom : public ::testing::TestWithParam<std::string_view> {
 protected:
  void Run(uint64_t first, uint64_t count) {
    const std::string_view name = GetParam();
    int changes = 0;
    for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
      SCOPED_TRACE(Cat(name, ", seed ", static_cast<int64_t>(seed)));
      auto graph = RandomModule(seed);
      changes += Check(name, *graph, RandomArguments(*graph, seed), KeepsBits(name));
      auto rows = RandomRowsModule(seed);
      changes += Check(name, *rows, RandomArguments(*rows, seed), KeepsBits(name));
      auto fused = FusedModule(seed);
      changes += Check(name, *fused, RandomArguments(*fused, seed), KeepsBits(name));
      for (uint64_t k = 0; k < 3; ++k) {
        auto control = ControlFodder(seed * 3 + k);
        changes += Check(name, *control, RandomArguments(*control, seed), true);
      }
      if (name == "split-concatenates") {
        auto wide = WideConcatenate(seed);
        changes += Check(name, *wide, RandomArguments(*wide, seed), true);
      }
      if (name == "unroll-reductions") {
        for (const bool exact : {true, false}) {
          auto stacked = Stacked(seed, exact);
          changes += Check(name, *stacked, RandomArguments(*stacked, seed), exact);
        }
      }
      if (name == "compare-extrema") {
        auto rectified = Rectified(seed);
        changes += Check(name, *rectified, SpecialArguments(*rectified, seed), true);
      }
      if ((name == "double-buffering" || name == "cpu") && seed % 4 == 0) {
        auto loop = TurningLoop(seed);
        changes += Check(name, *loop, RandomArguments(*loop, seed), true);
      }
      if (name == "rematerialisation" && seed % 8 == 0) {
        auto late = LateUses(seed);
        for (const int effort : {0, 2, kMostMemoryEffort}) {
          changes += Check(name, *late, RandomArguments(*late, seed), true, effort);
        }
      }
      // What rounds differently may differ in everything after that, with such arguments.
      if (!KeepsBits(name)) continue;
      auto fodder = Fodder(seed, 30);
      changes += Check(name, *fodder, SpecialArguments(*fodder, seed), true);
    }
    EXPECT_GT(changes, static_cast<int>(count / 40)) << "the pass found hardly anything to do";
  }
};

TEST_P(PassesRandom, KeepsResults) { Run(1, 250); }

INSTANTIATE_TEST_SUITE_P(All, PassesRandom, ::testing::ValuesIn(Names()), [](const auto& info) {
  std::string name(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

class SlowPassesRandom : public PassesRandom {};
TEST_P(SlowPassesRandom, KeepsResults) { Run(1000, 5000); }
INSTANTIATE_TEST_SUITE_P(SlowAll, SlowPassesRandom, ::testing::ValuesIn(Names()),
                         [](const auto& info) {
                           std::string name(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

KILN_LABEL(slow, "SlowAll/SlowPassesRandom");

}  // namespace
}  // namespace kiln::passes

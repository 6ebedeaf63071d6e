#include "random/check.h"

#include <cstdlib>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "passes/pipelines.h"
#include "program/frozen.h"
#include "random/fodder.h"
#include "random/gradients.h"
#include "random/module.h"
#include "random/repeats.h"
#include "random/rows.h"
#include "support/compiled.h"
#include "support/gpu.h"
#include "support/literal.h"
#include "tools/reduce/reduce.h"

namespace kiln::testing {
namespace {

// Loops that a pass made endless, or a module that was cut down, end.
const interp::Options kBounded{.max_work = 640'000'000};

using Compare = std::string (*)(const ir::Module&, const Literal&, const Literal&);

std::string Roughly(const ir::Module& module, const Literal& expected, const Literal& actual) {
  return DifferenceOf(module, expected, actual, 1e-3);
}
// What is added in another order.
std::string Rounded(const ir::Module& module, const Literal& expected, const Literal& actual) {
  return DifferenceOf(module, expected, actual, 1e-5);
}
std::string Exactly(const ir::Module& module, const Literal& expected, const Literal& actual) {
  return BitDifference(expected, actual);
}

// For every other graph so little that what is small is bundled, and cut into tasks.
double TaskMicroseconds(uint64_t seed) { return seed / 2 % 2 == 0 ? 10 : 0.01; }

struct How {
  const char* name;
  bool fuse;
  codegen::Optimization optimization;
};
constexpr How kHow[] = {{"fused", true, codegen::Optimization::kFull},
                        {"fused, quick code", true, codegen::Optimization::kQuick},
                        {"op by op", false, codegen::Optimization::kFull}};

std::string Compiled(const ir::Module& module, const std::vector<Literal>& arguments, uint64_t seed,
                     Compare compare, std::span<const How> ways = kHow) {
  auto expected = interp::Evaluate(module, arguments, kBounded);
  if (!expected.ok()) return "";
  constexpr int kVectorBytes[] = {64, 32, 16};
  for (auto [how, fuse, optimization] : ways) {
    auto loaded = Load(module, fuse, kVectorBytes[seed % 3], optimization, TaskMicroseconds(seed));
    if (!loaded.ok()) return loaded.status().ToString();
    Execution run(*loaded->artefact);
    run.SetArguments(arguments);
    Status status = loaded->executable->Run(run.arguments(), run.results());
    if (!status.ok()) return status.ToString();
    std::string difference = compare(module, *expected, run.Result());
    if (difference.empty()) continue;
    return Cat(how, ": ", difference, "\n", loaded->artefact->program.ToString());
  }
  return "";
}

std::string RunCompiledCheck(const ir::Module& module, uint64_t seed) {
  return Compiled(module, RandomArguments(module, seed), seed, Roughly);
}
std::string RunCompiledExactly(const ir::Module& module, uint64_t seed) {
  return Compiled(module, RandomArguments(module, seed), seed, Exactly);
}

// In one way for each module, as there are many.
std::string RunTypes(const ir::Module& module, uint64_t seed) {
  constexpr int kWays[] = {1, 2, 1, 2, 0};
  return Compiled(module, RandomArguments(module, seed), seed, Roughly,
                  std::span(kHow).subspan(kWays[seed % 5], 1));
}

// On one thread and on several: the same bits.
std::string RunThreads(const ir::Module& module, uint64_t seed) {
  static runtime::ThreadPool pool(3);
  std::vector<Literal> arguments = RandomArguments(module, seed);
  auto expected = interp::Evaluate(module, arguments, kBounded);
  if (!expected.ok()) return "";
  auto loaded = Load(module, seed % 4 != 0, seed % 3 == 0 ? 32 : 64, codegen::Optimization::kAuto,
                     TaskMicroseconds(seed));
  if (!loaded.ok()) return loaded.status().ToString();
  auto wide = LoadOnPool(loaded->artefact, pool);
  if (!wide.ok()) return wide.status().ToString();
  Execution alone(*loaded->artefact), together(*loaded->artefact);
  alone.SetArguments(arguments);
  together.SetArguments(arguments);
  Status status = loaded->executable->Run(alone.arguments(), alone.results(), {.threads = 1});
  if (status.ok()) status = (*wide)->Run(together.arguments(), together.results());
  if (!status.ok()) return status.ToString();
  std::string difference = DifferenceOf(module, *expected, alone.Result(), 1e-2);
  if (difference.empty() && !alone.SameBits(together)) difference = "threads give other bits";
  if (difference.empty()) return "";
  return Cat(difference, "\n", loaded->artefact->program.ToString());
}

std::string RunGpu(const ir::Module& module, uint64_t seed) {
  std::vector<Literal> arguments = RandomArguments(module, seed);
  auto expected = interp::Evaluate(module, arguments, kBounded);
  if (!expected.ok()) return "";
  constexpr int kArchitectures[] = {80, 75, 90};
  int sm = kArchitectures[seed % 3];
  auto loaded = LoadOnGpu(module, seed % 4 != 0, sm);
  if (!loaded.ok()) return loaded.status().ToString();
  auto actual = RunOnGpu(*loaded, arguments);
  std::string difference =
      actual.ok() ? Roughly(module, *expected, *actual) : actual.status().ToString();
  if (difference.empty()) return "";
  return Cat(difference, "\n", loaded->artefact->program.ToString());
}

// Some arguments, or all of them.
std::vector<size_t> SomeFrozen(const ir::Module& module, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<size_t> frozen;
  size_t leaf = 0;
  for (const ir::Instruction* parameter : module.entry()->parameters()) {
    ForEachLeaf(parameter->shape(), [&](const Shape& shape, auto) {
      if (shape.is_array() && (seed % 4 == 0 || random() % 3 > 0)) frozen.push_back(leaf);
      ++leaf;
    });
  }
  return frozen;
}

// With frozen arguments, on a CPU or a GPU: those that runs do not read are not there.
std::string RunFrozen(const ir::Module& module, uint64_t seed) {
  std::vector<Literal> arguments = RandomArguments(module, seed);
  auto expected = interp::Evaluate(module, arguments, kBounded);
  if (!expected.ok() || !module.aliases().empty()) return "";
  auto loaded = seed % 3 == 2
                    ? LoadOnGpu(module, true, SharedGpu(), SomeFrozen(module, seed))
                    : Load(module, true, seed % 3 == 0 ? 32 : 64, codegen::Optimization::kAuto,
                           TaskMicroseconds(seed), SomeFrozen(module, seed));
  if (!loaded.ok()) return loaded.status().ToString();
  const program::Program& program = loaded->executable->program();
  Execution run(*loaded->artefact);
  run.SetArguments(arguments);
  std::vector<size_t> groups(program::FrozenGroups(program).size());
  std::iota(groups.begin(), groups.end(), 0);
  std::shared_ptr<const runtime::Binding> binding;
  if (!groups.empty()) {
    auto bound = loaded->executable->Bind(nullptr, groups, run.arguments());
    if (!bound.ok()) return bound.status().ToString();
    binding = *std::move(bound);
  }
  std::vector<const void*> given(run.arguments().begin(), run.arguments().end());
  const std::vector<bool> kept = program::KeptArguments(program);
  for (size_t a = 0; a < given.size(); ++a) {
    if (program::IsFrozen(program, a) && !kept[a]) given[a] = nullptr;
  }
  Status status = loaded->executable->Run(given, run.results(), {.binding = binding.get()});
  std::string difference =
      status.ok() ? Roughly(module, *expected, run.Result()) : status.ToString();
  if (difference.empty()) return "";
  return Cat(difference, "\n", loaded->artefact->program.ToString());
}

// A pass or pipeline by itself, held against the module before it.
std::string RunPass(std::string_view name, const passes::Pipeline& pipeline,
                    const ir::Module& module, const std::vector<Literal>& arguments,
                    const Literal& expected, Compare compare) {
  auto changed = module.Clone();
  passes::PassContext context;
  context.verify = true;
  Status status = passes::RunPipeline("test", pipeline, *changed, context);
  if (!status.ok()) return Cat(name, ": ", status.ToString());
  auto actual = interp::Evaluate(*changed, arguments, kBounded);
  if (!actual.ok()) return Cat(name, ": ", actual.status().ToString());
  std::string difference = compare(module, expected, *actual);
  if (difference.empty()) return "";
  return Cat(name, ": ", difference, "; it makes\n", ir::ToHloText(*changed));
}

// Sums in another order and powers as products are what the algebraic simplifier may change, and
// ops that are other ops, of real numbers, are rounded as those are; the other passes move work,
// and never a bit.
bool KeepsBits(std::string_view pass) {
  return pass != "algebraic-simplifier" && pass != "expand-ops" && pass != "expand-complex" &&
         pass != "expand-narrow";
}

std::string RunPasses(const ir::Module& module, const std::vector<Literal>& arguments,
                      Compare inexact) {
  auto expected = interp::Evaluate(module, arguments, kBounded);
  if (!expected.ok()) return "";
  for (const passes::Pass& pass : passes::AllPasses()) {
    passes::Pipeline pipeline = {{.passes = {pass.name}}};
    // These know no ops that become others, nor fusions of them or constants of several arrays;
    // complex numbers as bits of narrow types are the first one's.
    if (pass.name == "expand-narrow" || pass.name == "expand-complex") {
      pipeline[0].passes = {"inline-fusions", "split-constants", "expand-ops", "expand-narrow"};
    }
    if (pass.name == "expand-complex") pipeline[0].passes.push_back(pass.name);
    std::string problem = RunPass(pass.name, pipeline, module, arguments, *expected,
                                  KeepsBits(pass.name) ? Exactly : inexact);
    if (!problem.empty()) return problem;
  }
  for (const passes::NamedPipeline& pipeline : passes::AllPipelines()) {
    std::string problem =
        RunPass(pipeline.name, pipeline.get(), module, arguments, *expected, inexact);
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string RunPassesRounded(const ir::Module& module, uint64_t seed) {
  return RunPasses(module, RandomArguments(module, seed), Rounded);
}
std::string RunPassesExactly(const ir::Module& module, uint64_t seed) {
  return RunPasses(module, RandomArguments(module, seed), Exactly);
}

// With NaNs, infinities, zeros of both signs and denormal numbers: passes, then compiled code.
std::string RunSpecial(const ir::Module& module, uint64_t seed) {
  std::vector<Literal> arguments = SpecialArguments(module, seed);
  std::string problem = RunPasses(module, arguments, Exactly);
  return problem.empty() ? Compiled(module, arguments, seed, Exactly) : problem;
}

// The rules of the algebraic simplifier, which need chances more than anything else.
std::string RunSimplifier(const ir::Module& module, uint64_t seed) {
  std::vector<Literal> arguments = SpecialArguments(module, seed);
  auto expected = interp::Evaluate(module, arguments, kBounded);
  if (!expected.ok()) return "";
  return RunPass("algebraic-simplifier",
                 {{.passes = {"algebraic-simplifier", "dce"}, .to_fixed_point = true}}, module,
                 arguments, *expected, Exactly);
}

std::unique_ptr<ir::Module> Graph(uint64_t seed) { return RandomModule(seed); }
std::unique_ptr<ir::Module> TypesGraph(uint64_t seed) {
  return RandomModule(seed, kRareTypesOptions);
}
std::unique_ptr<ir::Module> LargeGraph(uint64_t seed) {
  return RandomModule(seed, {.ops = 8, .max_rank = 4, .max_elements = 800000});
}
std::unique_ptr<ir::Module> GpuGraph(uint64_t seed) {
  return seed % 4 == 3 ? RandomRowsModule(seed) : RandomModule(seed);
}
std::unique_ptr<ir::Module> ExactFodder(uint64_t seed) {
  return Fodder(seed, 20, FodderKind::kExact);
}

std::unique_ptr<ir::Module> MuchExactFodder(uint64_t seed) {
  return Fodder(seed, 400, FodderKind::kExact);
}

constexpr RandomCheck kChecks[] = {
    {"simplifier", "exact ops on special values before and after the simplifier, in the evaluator",
     MuchExactFodder, RunSimplifier},
    {"compiled", "graphs, fused and op by op, against the evaluator", Graph, RunCompiledCheck},
    {"rows", "programs over rows, fused and op by op, against the evaluator", RandomRowsModule,
     RunCompiledCheck},
    {"control", "loops and conditionals, fused and op by op, against the evaluator", ControlFodder,
     RunCompiledExactly},
    {"special", "exact ops on NaNs, infinities and denormal numbers: single passes and compiled",
     ExactFodder, RunSpecial},
    {"threads", "large graphs on one thread and on three", LargeGraph, RunThreads},
    {"gpu", "graphs on the emulated GPU, fused and op by op, against the evaluator", GpuGraph,
     RunGpu},
    {"frozen", "graphs with frozen arguments, on a CPU and a GPU, against the evaluator", Graph,
     RunFrozen},
    {"types", "graphs of complex numbers and narrow types against the evaluator", TypesGraph,
     RunTypes},
    {"types-gpu", "the same on the emulated GPU", TypesGraph, RunGpu},
    {"types-passes", "the same before and after every single pass, in the evaluator", TypesGraph,
     RunPassesRounded},
    {"repeats", "repeated results and given fusions, fused and op by op, against the evaluator",
     RandomRepeatsModule, RunCompiledCheck},
    {"repeats-gpu", "the same on the emulated GPU", RandomRepeatsModule, RunGpu},
    {"repeats-passes", "the same before and after every single pass, in the evaluator",
     RandomRepeatsModule, RunPassesRounded},
    {"passes", "graphs before and after every single pass, in the evaluator", Graph,
     RunPassesRounded},
    {"control-passes", "loops and conditionals before and after every single pass", ControlFodder,
     RunPassesExactly},
    {"gradients", "derivatives of graphs against differences, and compiled against the evaluator",
     RandomSmoothModule, CheckRandomDerivatives},
};

}  // namespace

std::span<const RandomCheck> RandomChecks() { return kChecks; }

const RandomCheck& RandomCheckByName(std::string_view name) {
  for (const RandomCheck& check : kChecks) {
    if (check.name == name) return check;
  }
  std::abort();
}

std::string Report(const RandomCheck& check, uint64_t seed, const std::string& problem) {
  auto module = check.make(seed);
  auto small = tools::Reduce(
      *module, [&](const ir::Module& candidate) { return !check.run(candidate, seed).empty(); },
      {.max_tries = 400});
  return Cat("seed ", static_cast<int64_t>(seed), " of '", check.name, "' (", check.what,
             "); again: kiln-fuzz-graphs --only ", check.name, " --first ",
             static_cast<int64_t>(seed), " --count 1\n", problem,
             "\nthe smallest module that fails (", small->instruction_count(), " of ",
             module->instruction_count(), " instructions): ", check.run(*small, seed), "\n",
             ir::ToHloText(*small));
}

}  // namespace kiln::testing

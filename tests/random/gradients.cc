#include "random/gradients.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "base/strings.h"
#include "grad/derivative.h"
#include "random/module.h"
#include "support/compiled.h"
#include "support/gpu.h"
#include "support/literal.h"

namespace kiln::testing {
namespace {

using ir::Instruction;

bool HasSecond(uint64_t seed) { return seed % 4 == 0; }

// Normally distributed, so that no number is in a special place; integers as in other programs.
std::vector<Literal> ArgumentsOf(const ir::Module& module, uint64_t seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::vector<Literal> arguments = RandomArguments(module, seed);
  for (Literal& x : arguments) {
    if (grad::IsDifferentiable(x.shape())) x = NormalLiteral(x.shape(), random);
  }
  return arguments;
}

// Compiled code of numbers as they come in the evaluator, within what rounding makes of the largest
// ones.
std::string CompareResults(const std::vector<Literal>& expected, const Literal& actual) {
  for (size_t k = 0; k < expected.size(); ++k) {
    double largest = 1;
    for (double number : expected[k].values<double>()) {
      if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
    }
    const std::string difference =
        Difference(expected[k], actual.elements()[k], 1e-7, 1e-7 * largest);
    if (!difference.empty()) return Cat("value ", k, ": ", difference);
  }
  return "";
}

std::string RunOnDevice(const ir::Module& module, const std::vector<Literal>& arguments,
                        const std::vector<Literal>& expected, uint64_t seed) {
  const bool on_gpu = seed % 3 == 2;
  constexpr int kArchitectures[] = {80, 75, 90};
  const bool fuse = seed % 5 != 0;
  auto loaded = on_gpu ? LoadOnGpu(module, fuse, kArchitectures[seed / 3 % 3])
                       : Load(module, fuse, seed % 2 == 0 ? 64 : 32, codegen::Optimization::kQuick);
  if (!loaded.ok()) return loaded.status().ToString();
  std::string problem;
  if (on_gpu) {
    auto actual = RunOnGpu(*loaded, arguments);
    problem = actual.ok() ? CompareResults(expected, *actual) : actual.status().ToString();
  } else {
    Execution run(*loaded->artefact);
    run.SetArguments(arguments);
    const Status status = loaded->executable->Run(run.arguments(), run.results());
    problem = status.ok() ? CompareResults(expected, run.Result()) : status.ToString();
  }
  return problem.empty() ? "" : Cat(on_gpu ? "on the GPU: " : "on the CPU: ", problem);
}

// Ops between parameters and results, by values with derivatives.
class Walk {
 public:
  explicit Walk(std::set<Opcode>& seen) : seen_(seen) {}

  void Computation(const ir::Computation& c) {
    std::set<const Instruction*> reached, needed = {c.root()};
    for (const Instruction* x : c.instructions()) {
      if (!grad::IsDifferentiable(x->shape())) continue;
      if (x->opcode() == Opcode::kParameter ||
          (HasDerivative(x->opcode()) && std::ranges::any_of(x->operands(), [&](auto* operand) {
             return reached.contains(operand);
           }))) {
        reached.insert(x);
      }
    }
    std::vector<const Instruction*> order(c.instructions().begin(), c.instructions().end());
    std::ranges::reverse(order);
    for (const Instruction* x : order) {
      if (!needed.contains(x) || !reached.contains(x)) continue;
      for (const Instruction* operand : x->operands()) needed.insert(operand);
      if (x->opcode() == Opcode::kParameter) continue;
      seen_.insert(x->opcode());
      if (RunsComputations(x->opcode())) {
        for (const ir::Computation* called : x->called()) Computation(*called);
      }
    }
  }

  static bool HasDerivative(Opcode opcode) {
    return InfoOf(opcode).gradient.rules != 0 || opcode == Opcode::kTuple ||
           opcode == Opcode::kGetTupleElement;
  }

 private:
  static bool RunsComputations(Opcode opcode) {
    return InfoOf(opcode).gradient.Has(GradientRules::kOfFlow) || opcode == Opcode::kMap;
  }

  std::set<Opcode>& seen_;
};

bool IsCounted(Opcode opcode) {
  const OpInfo& op = InfoOf(opcode);
  return Walk::HasDerivative(opcode) && !(op.traits & (kSessionOnly | kCompilerOnly | kCollective));
}

}  // namespace

std::unique_ptr<ir::Module> RandomSmoothModule(uint64_t seed) {
  return RandomModule(seed, kSmoothOptions);
}

std::string CheckRandomDerivatives(const ir::Module& module, uint64_t seed) {
  DerivativeCounts counts;
  return CheckRandomDerivatives(module, seed, counts);
}

std::string CheckRandomDerivatives(const ir::Module& module, uint64_t seed,
                                   DerivativeCounts& counts) {
  uint64_t run = seed;
  const DerivativeCheck how = {
      .orders = HasSecond(seed) ? 2 : 1,
      .step = 2e-5,
      .tolerance = 1e-6,
      .has_kinks = true,
      .also = [&](const ir::Module& derivative, const std::vector<Literal>& arguments,
                  const std::vector<Literal>& results) {
        return RunOnDevice(derivative, arguments, results, run++);
      }};
  return CheckDerivatives(module, ArgumentsOf(module, seed), how, &counts);
}

void AddGradientCoverage(const ir::Module& module, uint64_t seed, GradientCoverage& coverage) {
  std::set<Opcode> seen;
  Walk(seen).Computation(*module.entry());
  for (Opcode opcode : seen) {
    ++coverage[opcode].first;
    coverage[opcode].second += HasSecond(seed);
  }
}

std::vector<Opcode> MissingFrom(const GradientCoverage& coverage) {
  std::vector<Opcode> missing;
  for (int k = 0; k < kOpcodeCount; ++k) {
    const auto opcode = static_cast<Opcode>(k);
    if (IsCounted(opcode) && !coverage.contains(opcode)) missing.push_back(opcode);
  }
  return missing;
}

std::string CoverageTable(const GradientCoverage& coverage) {
  std::string table;
  char line[80];
  std::snprintf(line, sizeof line, "%-26s%8s%8s\n", "op", "graphs", "second");
  table += line;
  for (int k = 0; k < kOpcodeCount; ++k) {
    const auto opcode = static_cast<Opcode>(k);
    if (!IsCounted(opcode)) continue;
    const auto found = coverage.find(opcode);
    const GradientCount count = found == coverage.end() ? GradientCount() : found->second;
    std::snprintf(line, sizeof line, "%-26s%8d%8d\n", std::string(OpcodeName(opcode)).c_str(),
                  count.first, count.second);
    table += line;
  }
  return table;
}

std::vector<int> CoveringGradientSeeds(int count) {
  constexpr int kMostSeeds = 5000;
  std::vector<int> seeds;
  GradientCoverage coverage;
  for (int seed = 0; seed < kMostSeeds; ++seed) {
    if (seed >= count && MissingFrom(coverage).empty()) break;
    GradientCoverage with = coverage;
    AddGradientCoverage(*RandomSmoothModule(static_cast<uint64_t>(seed)),
                        static_cast<uint64_t>(seed), with);
    if (seed >= count && MissingFrom(with).size() == MissingFrom(coverage).size()) continue;
    coverage = std::move(with);
    seeds.push_back(seed);
  }
  return seeds;
}

}  // namespace kiln::testing

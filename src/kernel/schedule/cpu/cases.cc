#include "kernel/schedule/cpu/cases.h"

#include <algorithm>
#include <optional>
#include <set>

namespace kiln::kernel {
namespace {

// Fewer tests take no longer than the loops of their own code do.
constexpr int64_t kLeastTests = 6;
constexpr size_t kMostCases = 128;
constexpr int64_t kLeastPoints = 256;

// Of the only variable of a test, which counts up.
std::optional<VariableId> TestedBy(const Node& n) {
  if (n.kind != Node::Kind::kInRange || n.index.terms().size() != 1) return std::nullopt;
  const Index::Term& term = n.index.terms()[0];
  if (term.coefficient != 1 || term.atom.kind != Atom::Kind::kVariable) return std::nullopt;
  return term.atom.variable;
}

}  // namespace

CpuCases CasesOf(const Kernel& kernel, const CpuNestSchedule& schedule) {
  CpuCases best;
  if (kernel.kind != Kernel::Kind::kNest || kernel.stages.size() != 1 ||
      schedule.tile_variable.valid() || schedule.strips.width > 0) {
    return best;
  }
  const Stage& stage = kernel.stages.front();
  if (!stage.variables.empty() || !stage.reductions.empty() || !stage.updates.empty()) return best;
  int64_t most = kLeastTests - 1;
  for (VariableId v : kernel.OuterVariables()) {
    const int64_t extent = kernel.variables[v].extent;
    const int64_t points = kernel.OuterPoints() / std::max<int64_t>(extent, 1);
    if (v == schedule.stages.front().vector_variable || points < kLeastPoints) continue;
    std::set<int64_t> begins = {0};
    int64_t tests = 0;
    for (const Node& n : stage.nodes) {
      if (TestedBy(n) != v) continue;
      ++tests;
      for (int64_t at : {-n.index.constant(), n.bound - n.index.constant()}) {
        if (at > 0 && at < extent) begins.insert(at);
      }
    }
    if (tests <= most || begins.size() > kMostCases) continue;
    most = tests;
    best = {v, {begins.begin(), begins.end()}};
  }
  return best;
}

}  // namespace kiln::kernel

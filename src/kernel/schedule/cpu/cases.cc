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
// Along vectors each piece has loops of its own, in each piece of another variable.
constexpr size_t kMostVectorCases = 16;
constexpr size_t kMostLoops = 32;

// Of the only variable of a test, which counts up.
std::optional<VariableId> TestedBy(const Node& n) {
  if (n.kind != Node::Kind::kInRange || n.index.terms().size() != 1) return std::nullopt;
  const Index::Term& term = n.index.terms()[0];
  if (term.coefficient != 1 || term.atom.kind != Atom::Kind::kVariable) return std::nullopt;
  return term.atom.variable;
}

struct Tests {
  int64_t count = 0;
  std::set<int64_t> begins = {0};  // of the pieces that they tell apart
};

Tests TestsOf(const Kernel& kernel, const Stage& stage, VariableId v) {
  Tests tests;
  for (const Node& n : stage.nodes) {
    if (TestedBy(n) != v) continue;
    ++tests.count;
    for (int64_t at : {-n.index.constant(), n.bound - n.index.constant()}) {
      if (at > 0 && at < kernel.variables[v].extent) tests.begins.insert(at);
    }
  }
  return tests;
}

// Whether most points are in whole vectors that no piece's end cuts.
bool MostInVectors(const std::set<int64_t>& begins, int64_t extent, int64_t width) {
  int64_t points = 0;
  for (auto at = begins.begin(); at != begins.end(); ++at) {
    const int64_t end = std::next(at) == begins.end() ? extent : *std::next(at);
    points += (end - *at) / width * width;
  }
  return points >= extent / 2;
}

// Of the variable that the most tests depend on alone, but for those that vectors go along.
std::optional<CpuCases> OuterCases(const Kernel& kernel, const CpuNestSchedule& schedule) {
  std::optional<CpuCases> best;
  int64_t most = kLeastTests - 1;
  for (VariableId v : kernel.OuterVariables()) {
    const int64_t extent = kernel.variables[v].extent;
    const int64_t points = kernel.OuterPoints() / std::max<int64_t>(extent, 1);
    const bool in_vectors =
        v == schedule.stages.front().vector_variable || v == schedule.interleaved;
    if (in_vectors || points < kLeastPoints) continue;
    const Tests tests = TestsOf(kernel, kernel.stages.front(), v);
    if (tests.count <= most || tests.begins.size() > kMostCases) continue;
    most = tests.count;
    best = {v, {tests.begins.begin(), tests.begins.end()}};
  }
  return best;
}

std::optional<CpuCases> VectorCases(const Kernel& kernel, const CpuNestSchedule& schedule) {
  const CpuStageSchedule& vectors = schedule.stages.front();
  const VariableId v = vectors.vector_variable;
  if (!v.valid() || vectors.halving || kernel.OuterPoints() < kLeastPoints) return std::nullopt;
  const Tests tests = TestsOf(kernel, kernel.stages.front(), v);
  const size_t pieces = tests.begins.size();
  if (pieces < 2 || pieces > kMostVectorCases) return std::nullopt;
  if (!MostInVectors(tests.begins, kernel.variables[v].extent, schedule.vector_width)) {
    return std::nullopt;
  }
  return CpuCases{v, {tests.begins.begin(), tests.begins.end()}};
}

}  // namespace

std::vector<CpuCases> CasesOf(const Kernel& kernel, const CpuNestSchedule& schedule) {
  std::vector<CpuCases> cases;
  if (kernel.kind != Kernel::Kind::kNest || kernel.stages.size() != 1 ||
      schedule.tile_variable.valid() || schedule.strips.width > 0) {
    return cases;
  }
  const Stage& stage = kernel.stages.front();
  if (!stage.variables.empty() || !stage.reductions.empty() || !stage.updates.empty()) return cases;
  size_t pieces = 1;
  if (std::optional<CpuCases> outer = OuterCases(kernel, schedule)) {
    pieces = outer->begins.size();
    cases.push_back(*std::move(outer));
  }
  std::optional<CpuCases> along = VectorCases(kernel, schedule);
  if (along && pieces * along->begins.size() <= kMostLoops) cases.push_back(*std::move(along));
  return cases;
}

}  // namespace kiln::kernel

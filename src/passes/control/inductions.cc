#include "compiler/trip_counts.h"

#include <vector>

#include "ir/analysis/effects.h"
#include "ir/analysis/trip_count.h"
#include "passes/fusion/merge.h"

namespace kiln::compiler {
namespace {

using ir::Computation;
using ir::Instruction;

// Fusions within fusions, too.
void UnfuseAll(Computation& c) {
  std::vector<Instruction*> fusions;
  for (Instruction* i : c.instructions()) {
    if (i->opcode() == Opcode::kFusion) fusions.push_back(i);
  }
  while (!fusions.empty()) {
    Instruction* fusion = fusions.back();
    fusions.pop_back();
    for (Instruction* i : passes::Unfuse(fusion)) {
      if (i->opcode() == Opcode::kFusion) fusions.push_back(i);
    }
  }
  for (Instruction* i : c.instructions()) {
    if (i->opcode() != Opcode::kGetTupleElement || i->operand(0)->opcode() != Opcode::kTuple) {
      continue;
    }
    c.ReplaceAllUses(i, i->operand(0)->operand(i->attributes().Int(Attr::kIndex)));
  }
}

}  // namespace

std::unordered_map<const Instruction*, int64_t> KnownTripCounts(const ir::Module& module) {
  std::vector<const Instruction*> loops;
  for (const auto& c : module.computations()) {
    for (const Instruction* i : c->instructions()) {
      // The condition of a loop whose trip count is known is not computed.
      if (i->opcode() == Opcode::kWhile && i->shape().is_tuple() &&
          !ir::HasSideEffect(*i->called(0))) {
        loops.push_back(i);
      }
    }
  }
  std::unordered_map<const Instruction*, int64_t> counts;
  if (loops.empty()) return counts;
  std::unordered_map<const Instruction*, Instruction*> copies;
  std::unique_ptr<ir::Module> copy = module.Clone(&copies);
  for (const Instruction* loop : loops) {
    const Instruction& of = *copies.at(loop);
    for (Computation* c : of.called()) UnfuseAll(*c);
    if (std::optional<int64_t> known = ir::InductionOf(of).trip_count) counts[loop] = *known;
  }
  return counts;
}

}  // namespace kiln::compiler

#include "passes/control/inductions.h"

#include <vector>

#include "ir/analysis/effects.h"
#include "passes/fusion/merge.h"

namespace kiln::passes {
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
    for (Instruction* i : Unfuse(fusion)) {
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

std::unordered_map<const Instruction*, ir::Induction> InductionsOf(const ir::Module& module) {
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
  std::unordered_map<const Instruction*, ir::Induction> inductions;
  if (loops.empty()) return inductions;
  std::unordered_map<const Instruction*, Instruction*> copies;
  std::unique_ptr<ir::Module> copy = module.Clone(&copies);
  for (const Instruction* loop : loops) {
    const Instruction& of = *copies.at(loop);
    for (Computation* c : of.called()) UnfuseAll(*c);
    inductions[loop] = ir::InductionOf(of);
  }
  return inductions;
}

}  // namespace kiln::passes

#include <unordered_set>
#include <vector>

#include "ir/analysis/effects.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

bool IsNeeded(const Instruction& i) {
  return i.IsRoot() || !i.users().empty() || i.opcode() == Opcode::kParameter ||
         ir::HasSideEffect(i);
}

bool RemoveDead(Computation& c) {
  std::vector<Instruction*> work;
  for (Instruction* i : c.instructions()) {
    if (!IsNeeded(*i)) work.push_back(i);
  }
  bool changed = !work.empty();
  while (!work.empty()) {
    Instruction* dead = work.back();
    work.pop_back();
    // Each operand once: the same one twice would be found dead twice.
    std::unordered_set<Instruction*> operands(dead->operands().begin(), dead->operands().end());
    c.Remove(dead);
    for (Instruction* operand : operands) {
      if (!IsNeeded(*operand)) work.push_back(operand);
    }
  }
  return changed;
}

}  // namespace

Result<bool> EliminateDeadCode(ir::Module& module, const PassContext& context) {
  bool changed = false;
  for (const auto& c : module.computations()) changed |= RemoveDead(*c);
  size_t before = module.computations().size();
  module.RemoveUnusedComputations();
  return changed || module.computations().size() != before;
}

}  // namespace kiln::passes

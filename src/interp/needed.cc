#include "interp/needed.h"

#include <algorithm>

#include "ir/analysis/effects.h"

namespace kiln::interp {

using ir::Computation;
using ir::Instruction;

bool NeededSearch::Acts(const Instruction& instruction) {
  if (HasTrait(instruction.opcode(), kCollective)) return true;
  if (HasTrait(instruction.opcode(), kSideEffect)) return true;
  if (instruction.opcode() == Opcode::kCustomCall ||
      instruction.opcode() == Opcode::kHostCallback) {
    return ir::HasSideEffect(instruction);
  }
  return std::ranges::any_of(instruction.called(), [&](const Computation* c) {
    if (auto known = acts_.find(c); known != acts_.end()) return known->second;
    const bool acts =
        std::ranges::any_of(c->instructions(), [&](const Instruction* i) { return Acts(*i); });
    acts_[c] = acts;
    return acts;
  });
}

}  // namespace kiln::interp

// The instructions that an evaluation runs.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "ir/ir.h"

namespace kiln::interp {

class NeededSearch {
 public:
  using Instructions = std::unordered_set<const ir::Instruction*>;

  // Of a computation: what the root needs, and what acts, with their operands; those of
  // instructions for which `is_known(instruction)` holds are not needed.
  template <typename IsKnown>
  Instructions In(const ir::Computation& computation, IsKnown&& is_known) {
    Instructions needed = {computation.root()};
    // Operands come before users, so that one backward sweep finds all.
    const ir::Instructions all = computation.instructions();
    for (auto it = all.end(); it != all.begin();) {
      const ir::Instruction* i = *--it;
      if (Acts(*i)) needed.insert(i);
      if (!needed.contains(i) || is_known(*i)) continue;
      needed.insert(i->operands().begin(), i->operands().end());
    }
    return needed;
  }
  // Whether it is run even if its result is unused: others may wait for it.
  bool Acts(const ir::Instruction& instruction);

 private:
  std::unordered_map<const ir::Computation*, bool> acts_;
};

}  // namespace kiln::interp

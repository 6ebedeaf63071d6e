#include "ir/analysis/session_only.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

namespace kiln::ir {
namespace {

bool MayHoldOne(const Computation& c) {
  static const std::vector<Opcode>& all = *[] {
    auto* opcodes = new std::vector<Opcode>;
    for (int k = 0; k < kOpcodeCount; ++k) {
      if (HasTrait(static_cast<Opcode>(k), kSessionOnly)) {
        opcodes->push_back(static_cast<Opcode>(k));
      }
    }
    return opcodes;
  }();
  return c.MayCall() || std::ranges::any_of(all, [&](Opcode o) { return c.MayHold(o); });
}

class Search {
 public:
  const Instruction* In(const Instruction& i) {
    if (HasTrait(i.opcode(), kSessionOnly)) return &i;
    for (const Computation* c : i.called()) {
      if (const Instruction* found = In(*c)) return found;
    }
    return nullptr;
  }
  const Instruction* In(const Computation& c) {
    if (!MayHoldOne(c) || !seen_.insert(&c).second) return nullptr;
    for (const Instruction* i : c.instructions()) {
      if (const Instruction* found = In(*i)) return found;
    }
    return nullptr;
  }

 private:
  // Without such an op.
  std::unordered_set<const Computation*> seen_;
};

}  // namespace

const Instruction* SessionOnlyIn(const Instruction& instruction) {
  return Search().In(instruction);
}

Status CheckNotSessionOnly(const Module& module) {
  const Instruction* found = Search().In(*module.entry());
  if (!found) return OkStatus();
  return InvalidArgument("'", found->name(), "' (", OpcodeName(found->opcode()),
                         ") cannot be compiled: ", WhyNotCompiled(found->opcode()),
                         "; run it in a session");
}

}  // namespace kiln::ir

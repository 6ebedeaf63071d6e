#include "kernel/group.h"

#include <algorithm>
#include <unordered_set>

namespace kiln::kernel {

using ir::Instruction;

Group GroupOf(const Instruction& instruction) {
  Group group;
  if (instruction.opcode() != Opcode::kFusion) {
    group.roots = {&instruction};
    for (const Instruction* operand : instruction.operands()) {
      if (std::find(group.inputs.begin(), group.inputs.end(), operand) == group.inputs.end()) {
        group.inputs.push_back(operand);
      }
    }
    return group;
  }
  const ir::Computation& fused = *instruction.called(0);
  for (const Instruction* p : fused.parameters()) group.inputs.push_back(p);
  if (fused.root()->opcode() == Opcode::kTuple) {
    for (const Instruction* root : fused.root()->operands()) group.roots.push_back(root);
  } else {
    group.roots = {fused.root()};
  }
  return group;
}

std::vector<const Instruction*> MembersOf(const Group& group) {
  std::vector<const Instruction*> members;
  std::unordered_set<const Instruction*> seen(group.inputs.begin(), group.inputs.end());
  struct Visit {
    const Instruction* instruction;
    int64_t next;
  };
  std::vector<Visit> stack;
  auto enter = [&](const Instruction* i) {
    if (seen.insert(i).second) stack.push_back({i, 0});
  };
  for (const Instruction* root : group.roots) {
    enter(root);
    while (!stack.empty()) {
      Visit& top = stack.back();
      if (top.next < top.instruction->operand_count()) {
        enter(top.instruction->operand(top.next++));
      } else {
        members.push_back(top.instruction);
        stack.pop_back();
      }
    }
  }
  return members;
}

std::vector<std::string> OpNamesOf(std::span<const Instruction* const> members) {
  std::vector<std::string> names;
  for (const Instruction* m : members) {
    if (!m->IsConstant()) names.push_back(m->op_name().empty() ? m->name() : m->op_name());
  }
  return names;
}

}  // namespace kiln::kernel

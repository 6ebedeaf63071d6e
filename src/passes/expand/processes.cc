// Collectives of a single process: replica 0 of partition 0.
#include <algorithm>

#include "passes/expand/expand.h"

namespace kiln::passes::expand {
namespace {

using ir::Instruction;

Status NeedsOthers(const Instruction* i) {
  return Unimplemented(OpcodeName(i->opcode()), ": '", i->name(), "' of shape ", i->shape(),
                       " needs other processes; compiled code runs as one");
}

// Whether process 0 is alone in its group; without groups all processes are one.
bool IsAlone(const Groups& groups) {
  for (const Ints& group : groups) {
    if (std::ranges::find(group, 0) == group.end()) continue;
    return std::ranges::all_of(group, [](int64_t process) { return process <= 0; });
  }
  return groups.empty();
}

bool IsMember(const Groups& groups) {
  return groups.empty() || std::ranges::any_of(groups, [](const Ints& group) {
           return std::ranges::find(group, 0) != group.end();
         });
}

}  // namespace

Result<Instruction*> OneProcess(Builder& b, Instruction* i) {
  const Groups& groups = i->attributes().GroupsOf(Attr::kReplicaGroups);
  switch (i->opcode()) {
    case Opcode::kPartitionId:
    case Opcode::kReplicaId:
      return b.Number(i->shape(), 0);
    case Opcode::kCollectiveBroadcast:
      // The first process of a group has what all get.
      for (const Ints& group : groups) {
        if (IsMember({group}) && group[0] != 0) return NeedsOthers(i);
      }
      return IsMember(groups) ? i->operand(0) : b.Zeros(i->shape());
    case Opcode::kCollectivePermute:
      for (const Ints& pair : i->attributes().GroupsOf(Attr::kSourceTargetPairs)) {
        if (pair[1] != 0) continue;
        if (pair[0] != 0) return NeedsOthers(i);
        return i->operand(0);
      }
      return b.Zeros(i->shape());
    default:
      break;
  }
  // An operand goes to each process.
  const bool exchanges = i->opcode() == Opcode::kAllToAll && i->operand_count() != 1;
  if (!IsAlone(groups) || exchanges) return NeedsOthers(i);
  // A single process gathers, reduces or exchanges only its own value.
  std::vector<Instruction*> operands(i->operands().begin(), i->operands().end());
  Instruction* all =
      operands.size() == 1 && !i->shape().is_tuple() ? operands[0] : b.Tuple(std::move(operands));
  auto same = [](const Shape& x, const Shape& y) {
    if (!x.is_tuple()) return x.SameTypeAndDimensions(y);
    return std::ranges::equal(x.elements(), y.elements(), [](const Shape& p, const Shape& q) {
      return p.SameTypeAndDimensions(q);
    });
  };
  if (!same(all->shape(), i->shape())) return NeedsOthers(i);
  return all;
}

}  // namespace kiln::passes::expand

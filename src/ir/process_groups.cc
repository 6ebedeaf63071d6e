#include "ir/process_groups.h"

#include <numeric>

namespace kiln::ir {
namespace {

Ints UpTo(int64_t count) {
  Ints numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// The number of members that it wrote is added to `written`.
void StateGroups(Instruction& i, int64_t replicas, int64_t partitions, int64_t& written) {
  Attributes& a = i.mutable_attributes();
  const bool channel = a.Int(Attr::kChannelId) > 0;
  const bool global = a.Bool(Attr::kUseGlobalDeviceIds);
  const bool spans = i.opcode() == Opcode::kAllGather || i.opcode() == Opcode::kAllReduce ||
                     i.opcode() == Opcode::kReduceScatter;
  const int64_t members = spans && global     ? replicas * partitions
                          : spans || !channel ? replicas
                                              : partitions;
  Groups groups = a.GroupsOf(Attr::kReplicaGroups);
  if (groups.empty()) {
    groups = {UpTo(members)};
    written += members;
  }
  if (spans && channel && !global && partitions > 1) {
    for (Ints& group : groups) {
      const Ints list = std::move(group);
      group.clear();
      for (int64_t p = 0; p < partitions; ++p) {
        for (int64_t r : list) {
          if (r >= 0 && r < replicas) group.push_back(r * partitions + p);
        }
        if (std::ssize(group) > replicas * partitions) break;  // some are there twice
      }
      written += std::ssize(group);
    }
    a.Set(Attr::kUseGlobalDeviceIds, true);
  }
  if (groups.size() > 1 || groups[0].size() > 1) a.Set(Attr::kReplicaGroups, std::move(groups));
}

}  // namespace

Status StateGroups(Module& module, int64_t replicas, int64_t partitions) {
  constexpr int64_t kMost = int64_t{1} << 24;
  int64_t written = 0;
  for (const auto& c : module.computations()) {
    for (Instruction* i : c->instructions()) {
      const bool grouped =
          HasTrait(i->opcode(), kCollective) && i->opcode() != Opcode::kCollectivePermute;
      if (grouped) StateGroups(*i, replicas, partitions, written);
      if (written > kMost) {
        return ResourceExhausted("the groups of collectives have more than ", kMost,
                                 " members in all");
      }
    }
  }
  return OkStatus();
}

}  // namespace kiln::ir

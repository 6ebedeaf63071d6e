#include "program/frozen.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "program/steps.h"

namespace kiln::program {
namespace {

// Sets of allocations that steps have in common.
class Sets {
 public:
  explicit Sets(size_t size) : parents_(size) { std::iota(parents_.begin(), parents_.end(), 0); }
  size_t Of(size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }
  void Unite(size_t a, size_t b) { parents_[Of(a)] = Of(b); }

 private:
  std::vector<size_t> parents_;
};

// What links steps: constants are there for all of them.
bool Links(const Allocation& a) {
  return a.kind == Allocation::Kind::kBound || a.kind == Allocation::Kind::kParameter;
}

// Calls f(id) with the allocations that link the step to others, of the steps within, too.
template <typename F>
void ForEachLink(const Program& program, const Step& step, F&& f) {
  const auto each = [&](const Step& s) {
    ForEachSlice(s, [&](const Slice& slice) {
      if (Links(program.allocations[slice.allocation])) f(slice.allocation);
    });
  };
  each(step);
  ForEachList(step, [&](const Steps& inner, bool) {
    ForEachStep(inner, [&](const Step& s, bool) { each(s); });
  });
}

}  // namespace

std::vector<FrozenGroup> FrozenGroups(const Program& program) {
  std::vector<FrozenGroup> groups;
  Sets sets(program.allocations.size());
  std::vector<AllocationId> first(program.binding.size());
  for (size_t s = 0; s < program.binding.size(); ++s) {
    ForEachLink(program, program.binding[s], [&](AllocationId id) {
      if (first[s].valid()) sets.Unite(first[s].index(), id.index());
      first[s] = id;
    });
  }
  std::unordered_map<size_t, size_t> group_of;  // by set
  for (size_t s = 0; s < program.binding.size(); ++s) {
    if (!first[s].valid()) continue;
    auto [it, fresh] = group_of.try_emplace(sets.Of(first[s].index()), groups.size());
    if (fresh) groups.emplace_back();
    groups[it->second].steps.push_back(program.binding[s]);
  }
  for (AllocationId id : program.allocations.ids()) {
    const Allocation& a = program.allocations[id];
    const auto it = Links(a) ? group_of.find(sets.Of(id.index())) : group_of.end();
    if (it == group_of.end()) continue;
    FrozenGroup& group = groups[it->second];
    if (a.kind == Allocation::Kind::kBound) {
      group.memory.push_back(id);
    } else {
      group.arguments.push_back(a.number);
    }
  }
  return groups;
}

std::vector<bool> KeptArguments(const Program& program) {
  std::vector<bool> kept(program.signature.parameters.size());
  // Programs of single ops have parameters without a signature.
  if (program.frozen.empty()) return kept;
  if (program.allocations.empty()) {
    std::copy(program.frozen.begin(), program.frozen.end(), kept.begin());
    return kept;
  }
  const IdVector<AllocationId, bool> used = AllocationUses(program);
  for (AllocationId id : program.allocations.ids()) {
    const Allocation& a = program.allocations[id];
    if (a.kind == Allocation::Kind::kParameter && used[id]) {
      kept[a.number] = IsFrozen(program, a.number);
    }
  }
  return kept;
}

}  // namespace kiln::program

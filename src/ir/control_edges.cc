#include "ir/control_edges.h"

#include <algorithm>
#include <utility>

namespace kiln::ir {

std::span<Instruction* const> ControlEdges::Of(const Lists& lists, const Instruction* i) {
  auto it = lists.find(i);
  if (it == lists.end()) return {};
  return it->second;
}

std::span<Instruction* const> ControlEdges::Predecessors(const Instruction* i) const {
  return Of(predecessors_, i);
}
std::span<Instruction* const> ControlEdges::Successors(const Instruction* i) const {
  return Of(successors_, i);
}

bool ControlEdges::Add(Instruction* before, Instruction* after) {
  std::span<Instruction*const> known = Predecessors(after), others = Successors(before);
  // One of the two is short where the other is a hub's.
  const bool is_there = known.size() < others.size()
                            ? std::ranges::find(known, before) != known.end()
                            : std::ranges::find(others, after) != others.end();
  if (is_there) return false;
  predecessors_[after].push_back(before);
  successors_[before].push_back(after);
  return true;
}

std::pair<std::vector<Instruction*>, std::vector<Instruction*>> ControlEdges::Take(Instruction* i) {
  auto take = [&](Lists& lists, Lists& opposite) {
    auto node = lists.extract(i);
    std::vector<Instruction*> list = node ? std::move(node.mapped()) : std::vector<Instruction*>();
    for (Instruction* other : list) {
      auto it = opposite.find(other);
      std::erase(it->second, i);
      if (it->second.empty()) opposite.erase(it);
    }
    return list;
  };
  std::vector<Instruction*> before = take(predecessors_, successors_);
  return {std::move(before), take(successors_, predecessors_)};
}

void ControlEdges::Bypass(Instruction* i) {
  auto [before, after] = Take(i);
  for (Instruction* successor : after) {
    for (Instruction* predecessor : before) Add(predecessor, successor);
  }
}

void ControlEdges::Replace(Instruction* from, Instruction* to) {
  auto [before, after] = Take(from);
  for (Instruction* predecessor : before) Add(predecessor, to);
  for (Instruction* successor : after) Add(to, successor);
}

}  // namespace kiln::ir

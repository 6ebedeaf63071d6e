#include "kernel/schedule/gpu/vectors.h"

#include <algorithm>

namespace kiln::kernel {
namespace {

// A thread's registers hold the loads in flight for all of its points.
constexpr size_t kNodesOfOneLane = 96;
constexpr size_t kNodesOfTwoLanes = 40;

}  // namespace

bool IsGpuVector(const Index& index, VariableId variable, int64_t lanes) {
  if (index.StrideOf(variable) != 1 || index.constant() % lanes != 0) return false;
  return std::ranges::all_of(index.terms(), [&](const Index::Term& t) {
    bool own = t.atom.kind == Atom::Kind::kVariable && t.atom.variable == variable;
    return own || t.coefficient % lanes == 0;
  });
}

int GpuLanes(const Kernel& kernel, const Stage& stage, VariableId variable) {
  const int64_t extent = kernel.variables[variable].extent;
  int most = stage.nodes.size() > kNodesOfOneLane    ? 1
             : stage.nodes.size() > kNodesOfTwoLanes ? 2
                                                     : 8;
  auto lanes_for = [&](int64_t bytes) {
    int lanes = static_cast<int>(std::min<int64_t>(kGpuAccessBytes / bytes, most));
    while (lanes > 1 && extent % lanes != 0) lanes /= 2;
    return lanes;
  };
  // The widest array decides, among those that gain.
  int64_t widest = 0;
  auto see = [&](const Index& index, ElementType type) {
    int64_t bytes = ByteWidth(type);
    if (IsGpuVector(index, variable, lanes_for(bytes))) widest = std::max(widest, bytes);
  };
  for (const Node& n : stage.nodes) {
    if (n.kind == Node::Kind::kLoad && !n.guard.valid()) see(n.index, n.type);
  }
  for (const Store& s : stage.stores) {
    see(s.index, kernel.params[s.param].type);
  }
  return widest == 0 ? 1 : lanes_for(widest);
}

}  // namespace kiln::kernel

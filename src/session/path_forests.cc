#include "session/path_forests.h"

#include <algorithm>

namespace kiln::session {

PathForests::PathForests(const GraphCycles& graph, const std::vector<int32_t>& kinds) {
  std::vector<int32_t> order = graph.Order(), places(kinds.size());
  for (size_t k = 0; k < order.size(); ++k) places[order[k]] = static_cast<int32_t>(k);
  for (Forest& forest : up_) forest.parents.assign(kinds.size(), -1);
  for (int32_t node : order) {
    int32_t& nearest = up_[kOut].parents[node];
    graph.ForEachSuccessor(node, [&](int32_t successor) {
      if (nearest < 0 || places[successor] < places[nearest]) nearest = successor;
      // The last of the predecessors in the order stays.
      up_[kIn].parents[successor] = node;
    });
  }
  Number(order, kinds, up_[kOut]);
  std::ranges::reverse(order);
  Number(order, kinds, up_[kIn]);
}

void PathForests::Number(const std::vector<int32_t>& order, const std::vector<int32_t>& kinds,
                         Forest& forest) {
  const std::vector<int32_t>& parents = forest.parents;
  forest.others.assign(kinds.size(), -1);
  forest.begins.assign(kinds.size(), 0);
  forest.ends.assign(kinds.size(), 0);
  std::vector<int32_t> sizes(kinds.size(), 1), free(kinds.size());
  for (int32_t node : order) {
    if (parents[node] >= 0) sizes[parents[node]] += sizes[node];
  }
  int32_t next_tree = 0;
  for (size_t k = order.size(); k-- > 0;) {
    const int32_t node = order[k], parent = parents[node];
    int32_t& begin = parent < 0 ? next_tree : free[parent];
    forest.begins[node] = begin;
    forest.ends[node] = begin += sizes[node];
    free[node] = forest.begins[node] + 1;
    if (parent < 0) continue;
    forest.others[node] = kinds[parent] == kinds[node] ? forest.others[parent] : parent;
  }
}

}  // namespace kiln::session

// Paths in an acyclic graph that are known without a search. Each node has a parent in two forests:
// the nearest of its successors in a topological order, and the nearest of its predecessors. A path
// up a forest is a path of the graph, and an ancestor is recognised by numbers. Long chains, where
// searches walk far, are such paths.
//
// Contractions keep paths: what was known of two nodes holds for the nodes that they became.
#pragma once

#include <cstdint>
#include <vector>

#include "session/cycles.h"

namespace kiln::session {

class PathForests {
 public:
  // Of the nodes that are alive. `kinds` has a number for each node; nodes of different kinds are
  // rarely contracted into one.
  PathForests(const GraphCycles& graph, const std::vector<int32_t>& kinds);

  // Whether `accepts` holds for a node inside of a known path. It is asked for two nodes at most:
  // those of another kind that are nearest to an end. The ends were alive at construction.
  template <typename Accepts>
  bool HavePathBy(int32_t from, int32_t to, Accepts accepts) const {
    const int32_t after = up_[kOut].others[from], before = up_[kIn].others[to];
    return (after >= 0 && up_[kOut].IsAbove(to, after) && accepts(after)) ||
           (before >= 0 && up_[kIn].IsAbove(from, before) && accepts(before));
  }

 private:
  enum Direction : int { kOut, kIn };
  struct Forest {
    // A node, or one of its ancestors.
    bool IsAbove(int32_t ancestor, int32_t node) const {
      return begins[ancestor] <= begins[node] && begins[node] < ends[ancestor];
    }
    std::vector<int32_t> parents;
    std::vector<int32_t> others;        // the nearest ancestor of another kind
    std::vector<int32_t> begins, ends;  // of the numbers of the nodes below, itself first
  };

  // The order has ancestors last.
  static void Number(const std::vector<int32_t>& order, const std::vector<int32_t>& kinds,
                     Forest& forest);

  Forest up_[2];
};

}  // namespace kiln::session

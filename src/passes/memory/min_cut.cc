#include "passes/memory/min_cut.h"

#include <algorithm>

namespace kiln::passes {

void MinCut::AddEdge(int32_t from, int32_t to, int64_t cost) {
  const auto add = [&](int32_t a, int32_t b, int64_t left) {
    edges_.push_back({b, first_[static_cast<size_t>(a)], left});
    first_[static_cast<size_t>(a)] = static_cast<int32_t>(edges_.size()) - 1;
  };
  add(from, to, cost);
  add(to, from, 0);
}

// The distances from the source along edges with something left; whether the sink has one.
bool MinCut::Levels(int32_t source, int32_t sink) {
  level_.assign(first_.size(), -1);
  std::vector<int32_t> queue = {source};
  level_[static_cast<size_t>(source)] = 0;
  for (size_t head = 0; head < queue.size(); ++head) {
    const int32_t node = queue[head];
    for (int32_t e = first_[static_cast<size_t>(node)]; e >= 0;
         e = edges_[static_cast<size_t>(e)].next) {
      const Edge& edge = edges_[static_cast<size_t>(e)];
      if (edge.left <= 0 || level_[static_cast<size_t>(edge.to)] >= 0) continue;
      level_[static_cast<size_t>(edge.to)] = level_[static_cast<size_t>(node)] + 1;
      queue.push_back(edge.to);
    }
  }
  steps_ += static_cast<int64_t>(edges_.size());
  return level_[static_cast<size_t>(sink)] >= 0;
}

// One path from the source to the sink along growing distances, and what flows there; 0 if there is
// none. Paths are as long as chains of ops: no recursion.
int64_t MinCut::Flow(int32_t source, int32_t sink) {
  std::vector<int32_t> path;  // edges
  int32_t node = source;
  while (node != sink) {
    ++steps_;
    int32_t& e = at_[static_cast<size_t>(node)];
    while (e >= 0) {
      const Edge& edge = edges_[static_cast<size_t>(e)];
      if (edge.left > 0 &&
          level_[static_cast<size_t>(edge.to)] == level_[static_cast<size_t>(node)] + 1) {
        break;
      }
      e = edge.next;
    }
    if (e >= 0) {
      path.push_back(e);
      node = edges_[static_cast<size_t>(e)].to;
      continue;
    }
    if (path.empty()) return 0;
    // A dead end: back, and past the edge that led here.
    const int32_t back = path.back();
    path.pop_back();
    node = edges_[static_cast<size_t>(back ^ 1)].to;
    at_[static_cast<size_t>(node)] = edges_[static_cast<size_t>(back)].next;
  }
  int64_t flow = kNever;
  for (int32_t e : path) flow = std::min(flow, edges_[static_cast<size_t>(e)].left);
  for (int32_t e : path) {
    edges_[static_cast<size_t>(e)].left -= flow;
    edges_[static_cast<size_t>(e ^ 1)].left += flow;
  }
  return flow;
}

std::vector<bool> MinCut::SinkSide(int32_t source, int32_t sink, int64_t most_steps) {
  std::vector<bool> side(first_.size(), false);
  while (Levels(source, sink)) {
    at_ = first_;
    while (Flow(source, sink) > 0) {
      if (steps_ > most_steps) return side;
    }
  }
  // Those from which the sink can still be reached.
  std::vector<int32_t> queue = {sink};
  side[static_cast<size_t>(sink)] = true;
  for (size_t head = 0; head < queue.size(); ++head) {
    for (int32_t e = first_[static_cast<size_t>(queue[head])]; e >= 0;
         e = edges_[static_cast<size_t>(e)].next) {
      const int32_t from = edges_[static_cast<size_t>(e)].to;
      if (edges_[static_cast<size_t>(e ^ 1)].left <= 0 || side[static_cast<size_t>(from)]) continue;
      side[static_cast<size_t>(from)] = true;
      queue.push_back(from);
    }
  }
  return side;
}

}  // namespace kiln::passes

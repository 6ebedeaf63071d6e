// Minimum cuts of directed graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace kiln::passes {

// A graph of nodes 0, 1, ..., with a source and a sink among them (Dinic's algorithm).
class MinCut {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 4;

  explicit MinCut(int32_t nodes) : first_(static_cast<size_t>(nodes), -1) {}
  // From a node to another, at the cost of cutting it; kNever: it is not cut.
  void AddEdge(int32_t from, int32_t to, int64_t cost);
  // The side of each node in the cheapest cut: true for the sink's. Of equal cuts the one nearest
  // to the sink. Ends early, with nothing cut, after about `most_steps` steps.
  std::vector<bool> SinkSide(int32_t source, int32_t sink, int64_t most_steps);

 private:
  struct Edge {
    int32_t to, next;
    int64_t left;  // what may still flow
  };
  bool Levels(int32_t source, int32_t sink);
  int64_t Flow(int32_t source, int32_t sink);

  std::vector<int32_t> first_, level_, at_;
  std::vector<Edge> edges_;  // an edge and its reverse side by side
  int64_t steps_ = 0;
};

}  // namespace kiln::passes

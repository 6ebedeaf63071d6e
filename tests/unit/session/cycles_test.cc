#include "session/cycles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "session/path_forests.h"

namespace kiln::session {
namespace {

// The same graph as a set of edges, searched from end to end.
class SimpleGraph {
 public:
  explicit SimpleGraph(int32_t nodes) : is_alive_(static_cast<size_t>(nodes), true) {}

  bool IsReachable(int32_t from, int32_t to, bool without_edge = false) const {
    std::vector<bool> seen(is_alive_.size());
    std::vector<int32_t> left = {from};
    while (!left.empty()) {
      int32_t at = left.back();
      left.pop_back();
      for (auto [a, b] : edges_) {
        if (a != at || (without_edge && a == from && b == to)) continue;
        if (b == to) return true;
        if (!seen[b]) seen[b] = true, left.push_back(b);
      }
    }
    return false;
  }
  bool AddEdge(int32_t from, int32_t to) {
    if (from == to || IsReachable(to, from)) return false;
    edges_.insert({from, to});
    return true;
  }
  bool CanContract(int32_t a, int32_t b) const {
    return !IsReachable(a, b, true) && !IsReachable(b, a, true);
  }
  void Contract(int32_t kept, int32_t gone) {
    std::set<std::pair<int32_t, int32_t>> edges;
    for (auto [a, b] : edges_) {
      if (a == gone) a = kept;
      if (b == gone) b = kept;
      if (a != b) edges.insert({a, b});
    }
    edges_ = std::move(edges);
    is_alive_[gone] = false;
  }
  std::vector<int32_t> Neighbours(int32_t node, bool out) const {
    std::vector<int32_t> all;
    for (auto [a, b] : edges_) {
      if ((out ? a : b) == node) all.push_back(out ? b : a);
    }
    return all;
  }
  const std::set<std::pair<int32_t, int32_t>>& edges() const { return edges_; }
  bool is_alive(int32_t node) const { return is_alive_[node]; }

 private:
  std::set<std::pair<int32_t, int32_t>> edges_;
  std::vector<bool> is_alive_;
};

std::vector<int32_t> Sorted(std::vector<int32_t> nodes) {
  std::ranges::sort(nodes);
  return nodes;
}

void ExpectEqual(const GraphCycles& cycles, const SimpleGraph& simple, int32_t nodes) {
  std::vector<int32_t> order = cycles.Order(), place(static_cast<size_t>(nodes), -1);
  for (size_t k = 0; k < order.size(); ++k) place[order[k]] = static_cast<int32_t>(k);
  for (int32_t node = 0; node < nodes; ++node) {
    ASSERT_EQ(cycles.IsAlive(node), simple.is_alive(node)) << node;
    ASSERT_EQ(place[node] >= 0, simple.is_alive(node)) << node;
    if (!simple.is_alive(node)) continue;
    ASSERT_EQ(Sorted(cycles.Successors(node)), simple.Neighbours(node, true)) << node;
    ASSERT_EQ(Sorted(cycles.Predecessors(node)), Sorted(simple.Neighbours(node, false))) << node;
    ASSERT_EQ(cycles.predecessor_count(node), std::ssize(simple.Neighbours(node, false)));
  }
  for (auto [from, to] : simple.edges()) {
    ASSERT_TRUE(cycles.HasEdge(from, to));
    ASSERT_LT(place[from], place[to]);
  }
}

TEST(GraphCycles, AgreesWithASimpleGraph) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const int32_t nodes = 2 + static_cast<int32_t>(random() % 24);
    auto pick = [&] { return static_cast<int32_t>(random() % static_cast<uint64_t>(nodes)); };
    GraphCycles cycles(nodes);
    SimpleGraph simple(nodes);
    for (int step = 0; step < 120; ++step) {
      int32_t a = pick(), b = pick();
      if (!simple.is_alive(a) || !simple.is_alive(b)) continue;
      const uint64_t kind = random() % 10;
      if (kind < 6) {
        ASSERT_EQ(cycles.AddEdge(a, b), simple.AddEdge(a, b)) << "seed " << seed;
      } else if (kind < 8 && a != b) {
        std::optional<int32_t> kept = cycles.Contract(a, b);
        ASSERT_EQ(kept.has_value(), simple.CanContract(a, b)) << "seed " << seed;
        if (kept) simple.Contract(*kept, *kept == a ? b : a);
      } else if (kind == 8) {
        ASSERT_EQ(cycles.IsReachable(a, b), a == b || simple.IsReachable(a, b));
      } else if (simple.IsReachable(a, b)) {
        std::vector<int32_t> between = cycles.Between(a, b);
        EXPECT_EQ(between.front(), a);
        EXPECT_EQ(between.back(), b);
        for (int32_t node = 0; node < nodes; ++node) {
          bool expected = node == a || node == b ||
                          (simple.IsReachable(a, node) && simple.IsReachable(node, b));
          ASSERT_EQ(std::ranges::count(between, node), expected) << "seed " << seed;
        }
      }
      ExpectEqual(cycles, simple, nodes);
      if (HasFatalFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
  }
}

// Sparse graphs of more nodes, by edges alone: both searches of an edge go far.
// Nodes of many edges are found by a table.
TEST(GraphCycles, AgreesWithASimpleGraphOfManyEdges) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    const int32_t nodes = 40;
    auto pick = [&] { return static_cast<int32_t>(random() % static_cast<uint64_t>(nodes)); };
    GraphCycles cycles(nodes);
    SimpleGraph simple(nodes);
    for (int step = 0; step < 900; ++step) {
      const int32_t a = pick(), b = pick();
      if (!simple.is_alive(a) || !simple.is_alive(b)) continue;
      const uint64_t kind = random() % 40;
      if (kind < 38) {
        ASSERT_EQ(cycles.AddEdge(std::min(a, b), std::max(a, b)),
                  simple.AddEdge(std::min(a, b), std::max(a, b)))
            << "seed " << seed;
      } else if (a != b) {
        std::optional<int32_t> kept = cycles.Contract(a, b);
        ASSERT_EQ(kept.has_value(), simple.CanContract(a, b)) << "seed " << seed;
        if (kept) simple.Contract(*kept, *kept == a ? b : a);
      }
    }
    ExpectEqual(cycles, simple, nodes);
  }
}

// Contractions alone, the same ones again and again: what failed before may be possible later, once
// the ends have absorbed the nodes between them.
TEST(GraphCycles, RemembersPathsThatAreInTheWay) {
  int failures = 0, late = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const int32_t nodes = seed % 2 == 0 ? 12 : 60;
    auto pick = [&] { return static_cast<int32_t>(random() % static_cast<uint64_t>(nodes)); };
    GraphCycles cycles(nodes);
    SimpleGraph simple(nodes);
    for (int step = 0; step < 4 * nodes; ++step) {
      // Nodes of many edges, too.
      const int32_t hub = pick() / 8, other = pick();
      const int32_t a = std::min(hub, other), b = std::max(hub, other);
      ASSERT_EQ(cycles.AddEdge(a, b), simple.AddEdge(a, b));
    }
    std::set<std::pair<int32_t, int32_t>> failed;
    for (int step = 0; step < 6 * nodes; ++step) {
      std::vector<std::pair<int32_t, int32_t>> edges(simple.edges().begin(), simple.edges().end());
      if (edges.empty()) break;
      const auto [a, b] = edges[random() % edges.size()];
      std::optional<int32_t> kept = cycles.Contract(a, b);
      ASSERT_EQ(kept.has_value(), simple.CanContract(a, b)) << "seed " << seed;
      if (!kept) {
        failures += !failed.insert({a, b}).second;
        continue;
      }
      late += failed.contains({a, b});
      simple.Contract(*kept, *kept == a ? b : a);
      for (int32_t end : {a, b}) ASSERT_EQ(cycles.NodeOf(end), *kept);
    }
    ExpectEqual(cycles, simple, nodes);
  }
  EXPECT_GT(failures, 100);
  EXPECT_GT(late, 100);
}

// Nodes are inside of the paths that they are said to be inside of, before and after contractions,
// and all paths of a chain are known.
TEST(PathForests, HavePathsOfTheGraph) {
  int found = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    const int32_t nodes = 30;
    GraphCycles cycles(nodes);
    SimpleGraph simple(nodes);
    std::vector<int32_t> kinds;
    for (int32_t node = 0; node < nodes; ++node) {
      kinds.push_back(static_cast<int32_t>(random() % 2));
      if (node == 0) continue;
      for (int32_t back : {int32_t{1}, 1 + static_cast<int32_t>(random() % 5)}) {
        const int32_t from = std::max(0, node - back);
        ASSERT_EQ(cycles.AddEdge(from, node), simple.AddEdge(from, node));
      }
    }
    const PathForests paths(cycles, kinds);
    for (int step = 0; step < 30; ++step) {
      for (int32_t from = 0; from < nodes; ++from) {
        for (int32_t to = from + 1; to < nodes; ++to) {
          const bool known = paths.HavePathBy(from, to, [&](int32_t node) {
            const int32_t a = cycles.NodeOf(from), b = cycles.NodeOf(to), c = cycles.NodeOf(node);
            EXPECT_TRUE(a == c || simple.IsReachable(a, c)) << "seed " << seed;
            EXPECT_TRUE(c == b || simple.IsReachable(c, b)) << "seed " << seed;
            EXPECT_NE(kinds[node], kinds[from] == kinds[node] ? kinds[to] : kinds[from]);
            return true;
          });
          // The chain leads from each node to the next one.
          const auto begin = kinds.begin() + from;
          const bool other =
              std::find(begin, begin + (to - from), 1 - *begin) != begin + (to - from);
          ASSERT_TRUE(known || !other) << "seed " << seed;
          found += known;
        }
      }
      const std::vector<std::pair<int32_t, int32_t>> edges(simple.edges().begin(),
                                                           simple.edges().end());
      if (edges.empty()) break;
      const auto [a, b] = edges[random() % edges.size()];
      if (auto kept = cycles.Contract(a, b)) simple.Contract(*kept, *kept == a ? b : a);
    }
  }
  EXPECT_GT(found, 1000);
}

TEST(EdgeTable, AgreesWithAMap) {
  std::mt19937_64 random(1);
  EdgeTable table;
  std::map<std::pair<int32_t, int32_t>, int32_t> map;
  for (int32_t step = 0; step < 50000; ++step) {
    // Few ends at first, and then many.
    const uint64_t ends = step < 25000 ? 20 : 200;
    const auto from = static_cast<int32_t>(random() % ends);
    const auto to = static_cast<int32_t>(random() % ends);
    const auto it = map.find({from, to});
    const int32_t known = it == map.end() ? EdgeTable::kNone : it->second;
    ASSERT_EQ(table.Find(from, to), known);
    if (random() % 2 == 0) {
      ASSERT_EQ(table.Insert(from, to, step), known == EdgeTable::kNone);
      map.try_emplace({from, to}, step);
    } else {
      ASSERT_EQ(table.Erase(from, to), known);
      map.erase({from, to});
    }
  }
}

TEST(GraphCycles, KeepsAnOrderUnderManyEdges) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const int32_t nodes = 120;
    std::vector<int32_t> place(nodes), hidden(nodes);
    std::iota(hidden.begin(), hidden.end(), 0);
    std::ranges::shuffle(hidden, random);
    GraphCycles cycles(nodes);
    std::vector<std::pair<int32_t, int32_t>> edges;
    for (int step = 0; step < 200; ++step) {
      int32_t from = static_cast<int32_t>(random() % nodes);
      int32_t to = static_cast<int32_t>(random() % nodes);
      if (hidden[from] > hidden[to]) std::swap(from, to);
      if (from == to) continue;
      ASSERT_TRUE(cycles.AddEdge(from, to));
      edges.emplace_back(from, to);
      std::vector<int32_t> order = cycles.Order();
      for (size_t k = 0; k < order.size(); ++k) place[order[k]] = static_cast<int32_t>(k);
      for (auto [a, b] : edges) ASSERT_LT(place[a], place[b]) << "seed " << seed;
    }
  }
}

// Edges against the order, each of which moves a node to the same place: labels run out often.
TEST(GraphCycles, KeepsAnOrderUnderManyMovesToOnePlace) {
  const int32_t nodes = 20000;
  GraphCycles cycles(nodes);
  for (int32_t node = 2; node < nodes; ++node) {
    ASSERT_TRUE(cycles.AddEdge(node, 1));
    ASSERT_TRUE(cycles.AddEdge(0, node));
  }
  ASSERT_FALSE(cycles.AddEdge(1, 0));
  std::vector<int32_t> order = cycles.Order();
  EXPECT_EQ(order.front(), 0);
  EXPECT_EQ(order.back(), 1);
  EXPECT_EQ(order.size(), static_cast<size_t>(nodes));
  // A chain against the order: 19999 -> 19998 -> ... -> 2.
  for (int32_t node = 3; node < nodes; ++node) ASSERT_TRUE(cycles.AddEdge(node, node - 1));
  EXPECT_FALSE(cycles.AddEdge(2, nodes - 1));
  EXPECT_TRUE(cycles.IsReachable(nodes - 1, 2));
}

TEST(GraphCycles, KeepsAnOrderUnderManyMovesToTheFront) {
  const int32_t nodes = 2000;
  GraphCycles cycles(nodes);
  ASSERT_TRUE(cycles.AddEdge(0, 1));
  int32_t first = 0;
  for (int32_t node = 2; node < nodes; ++node) {
    ASSERT_TRUE(cycles.AddEdge(node, first));
    first = node;
  }
  std::vector<int32_t> order = cycles.Order();
  ASSERT_EQ(order.size(), static_cast<size_t>(nodes));
  EXPECT_TRUE(std::ranges::is_sorted(order.begin(), order.end() - 2, std::greater()));
  EXPECT_EQ(order[nodes - 2], 0);
  EXPECT_EQ(order[nodes - 1], 1);
}

TEST(GraphCycles, ContractsAWideFan) {
  const int32_t nodes = 100000;
  GraphCycles cycles(nodes);
  for (int32_t node = 1; node < nodes - 1; ++node) {
    ASSERT_TRUE(cycles.AddEdge(0, node));
    ASSERT_TRUE(cycles.AddEdge(node, nodes - 1));
  }
  // Every other node in the middle; the ends have other paths between them until the last.
  int32_t first = 0;
  for (int32_t node = 1; node < nodes - 1; node += 2) {
    std::optional<int32_t> kept = cycles.Contract(first, node);
    ASSERT_TRUE(kept);
    first = *kept;
  }
  EXPECT_FALSE(cycles.Contract(first, nodes - 1));
  for (int32_t node = 2; node < nodes - 1; node += 2) {
    std::optional<int32_t> kept = cycles.Contract(first, node);
    ASSERT_TRUE(kept);
    first = *kept;
  }
  std::optional<int32_t> last = cycles.Contract(first, nodes - 1);
  ASSERT_TRUE(last);
  EXPECT_EQ(cycles.Order(), std::vector<int32_t>{*last});
  EXPECT_TRUE(cycles.Successors(*last).empty());
}

}  // namespace
}  // namespace kiln::session

// An acyclic graph with a topological order, kept while edges are added and nodes are contracted:
// XLA's GraphCycles.
//
// Only the affected region is searched: the nodes between the two ends in the order (D. Pearce,
// P. Kelly, "A Dynamic Topological Sort Algorithm for Directed Acyclic Graphs", ACM Journal of
// Experimental Algorithmics 11, 2006). A forward search from one end takes the nodes in their
// order, a backward search from the other end in the reverse order, and the two take turns, edge by
// edge. There is no path once they pass each other, or once one of them has no edges left, and only
// nodes of which all edges were walked move (M. Bender, J. Fineman, S. Gilbert, R. Tarjan, "A New
// Approach to Incremental Cycle Detection and Related Problems", ACM Transactions on Algorithms 12,
// 2016). A value with thousands of users thus costs no more than its users do. The order is a list
// with labels (M. Bender and others, "Two Simplified Algorithms for Maintaining Order in a List",
// ESA 2002).
//
// Paths last, as no edge is removed. A contraction that fails stores a node of the path in the
// edge, so the next one fails without a search. A search that finds a node of many edges looks up
// the edge from there to its goal before it walks them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "session/edge_table.h"

namespace kiln::session {

class GraphCycles {
 public:
  // Nodes 0 to node_count - 1 without edges, in this order.
  explicit GraphCycles(int32_t node_count);
  // Makes room for so many edges at once.
  void ReserveEdges(size_t count) { edges_.reserve(count); }

  // Nodes in arguments are alive: never contracted into another one.

  // False, with nothing changed: the edge would close a cycle. Any two nodes have at most one edge.
  bool AddEdge(int32_t from, int32_t to);
  bool HasEdge(int32_t from, int32_t to) const { return Find(from, to) != kNone; }

  // Makes one node of two, with the edges of both, at a cost of the smaller number of edges. The
  // result is the one of the two that stays alive. Nullopt, with nothing changed: a path of more
  // than one edge leads from one to the other, and would become a cycle.
  std::optional<int32_t> Contract(int32_t a, int32_t b);

  bool IsAlive(int32_t node) const { return next_[node] >= 0; }
  // The node that a node, alive or not, was contracted into.
  int32_t NodeOf(int32_t node) {
    while (parents_[node] != node) node = parents_[node] = parents_[parents_[node]];
    return node;
  }
  // In no particular order.
  std::vector<int32_t> Successors(int32_t node) const { return Neighbours(kOut, node); }
  template <typename Visit>
  void ForEachSuccessor(int32_t node, Visit visit) const {
    for (int32_t e = First(kOut, node); e >= 0; e = edges_[e].next[kOut])
      visit(edges_[e].ends[kOut]);
  }
  std::vector<int32_t> Predecessors(int32_t node) const { return Neighbours(kIn, node); }
  int64_t predecessor_count(int32_t node) const { return nodes_[node].sides[kIn].degree; }

  // Whether a path leads from one to the other; a node reaches itself.
  bool IsReachable(int32_t from, int32_t to);
  // The nodes on paths between the two, the ends included, in the order. There is a path.
  std::vector<int32_t> Between(int32_t from, int32_t to) const;
  // The nodes that are alive, predecessors before successors.
  std::vector<int32_t> Order() const;

 private:
  static constexpr int32_t kNone = -1;
  enum Direction : int { kOut, kIn };
  static Direction Reverse(Direction d) { return d == kOut ? kIn : kOut; }
  // `ends[d]` is the end that the edge has in direction d, and the other two are its neighbours in
  // the list of the edges of the end that it leaves in this direction.
  struct Edge {
    int32_t ends[2], next[2], previous[2];
    // A node that has been inside of another path between the ends, or none.
    int32_t detour;
  };
  // What a walk reads of a node, side by side.
  struct Node {
    uint64_t label = 0;
    struct Side {
      int32_t first = kNone;     // the first edge
      uint32_t degree : 31 = 0;  // the number of edges
      uint32_t is_long : 1 = 0;  // whether there have been more than kShort of them
      uint32_t seen = 0;         // the number of the last search that found the node
    } sides[2];
  };
  // A search from a node in one direction.
  struct Search {
    std::vector<int32_t> heap;  // found, and next in the order of this direction
    int32_t node, edge;         // the node at hand, or none, and its next edge
    std::vector<int32_t> done;  // all edges were walked
  };
  // Lists of so many edges are searched one by one: they are walked soon anyway.
  static constexpr int32_t kShort = 8;

  int32_t First(Direction d, int32_t node) const { return nodes_[node].sides[d].first; }
  uint32_t Degree(Direction d, int32_t node) const { return nodes_[node].sides[d].degree; }
  bool IsLong(Direction d, int32_t node) const { return nodes_[node].sides[d].is_long; }
  uint64_t Label(int32_t node) const { return nodes_[node].label; }
  uint32_t& Seen(Direction d, int32_t node) { return nodes_[node].sides[d].seen; }
  // The edge, or kNone.
  int32_t Find(int32_t from, int32_t to) const;
  bool IsInTable(int32_t from, int32_t to) const { return IsLong(kOut, from) && IsLong(kIn, to); }
  std::vector<int32_t> Neighbours(Direction d, int32_t node) const;
  void Push(Direction d, int32_t node, int32_t edge);
  void Detach(Direction d, int32_t edge);
  void MakeLong(Direction d, int32_t node);
  void Link(int32_t from, int32_t to);
  void Unlink(int32_t edge);
  // Whether the edge's detour is one still: neither end has absorbed it.
  bool HasDetour(int32_t edge);
  void Absorb(int32_t kept, int32_t gone);

  // Looks for a path from a node to one behind it in the order, other than the edge `ignored`.
  bool FindPath(int32_t from, int32_t to, int32_t ignored);
  // Takes the next node where the one at hand has no edges left. False: there is none.
  bool Advance(Direction d);
  // Walks one edge. Whether a path is known then; a node inside of it, if there is one, is detour_.
  bool Walk(Direction d, int32_t low, int32_t high, int32_t ignored);
  // Puts `second` directly before `first`, which is before it now. False, with nothing changed: a
  // path leads from `first` to `second`, other than the edge `ignored`.
  bool Exchange(int32_t first, int32_t second, int32_t ignored);

  void TakeOut(int32_t node);
  void LinkAfter(int32_t place, int32_t node, uint64_t label);
  // Puts nodes, which are not in the list, behind `place`.
  void InsertBehind(int32_t place, std::span<const int32_t> nodes);
  void MakeRoomBehind(int32_t place);

  int32_t head() const { return static_cast<int32_t>(nodes_.size()) - 2; }
  int32_t tail() const { return static_cast<int32_t>(nodes_.size()) - 1; }

  std::vector<Edge> edges_;
  std::vector<int32_t> free_edges_;
  std::vector<Node> nodes_;
  EdgeTable table_;  // the edges between nodes that are long in their directions
  // The order: a list from head() to tail(), with ascending labels. Nodes that are not alive have
  // no next one.
  std::vector<int32_t> next_, previous_;
  std::vector<int32_t> parents_;  // the node that a node was contracted into
  Search searches_[2];
  int32_t detour_ = kNone;
  uint32_t search_ = 0;
};

}  // namespace kiln::session

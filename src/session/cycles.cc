#include "session/cycles.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace kiln::session {
namespace {

constexpr int kLabelBits = 62;
constexpr uint64_t kLastLabel = uint64_t{1} << kLabelBits;

}  // namespace

GraphCycles::GraphCycles(int32_t node_count) {
  const size_t n = static_cast<size_t>(node_count);
  parents_.resize(n);
  std::iota(parents_.begin(), parents_.end(), 0);
  next_.resize(n + 2);
  previous_.resize(n + 2);
  nodes_.resize(n + 2);
  next_[tail()] = previous_[head()] = kNone;
  nodes_[tail()].label = kLastLabel;
  int32_t last = head();
  for (int32_t node = 0; node <= node_count; ++node) {
    int32_t at = node < node_count ? node : tail();
    if (at != tail()) nodes_[at].label = (static_cast<uint64_t>(node) + 1) * (kLastLabel / (n + 1));
    next_[last] = at;
    previous_[at] = last;
    last = at;
  }
}

std::vector<int32_t> GraphCycles::Neighbours(Direction d, int32_t node) const {
  std::vector<int32_t> all;
  all.reserve(static_cast<size_t>(Degree(d, node)));
  for (int32_t e = First(d, node); e >= 0; e = edges_[e].next[d]) all.push_back(edges_[e].ends[d]);
  return all;
}

void GraphCycles::Push(Direction d, int32_t node, int32_t edge) {
  Node::Side& side = nodes_[node].sides[d];
  const int32_t first = side.first;
  edges_[edge].next[d] = first;
  edges_[edge].previous[d] = kNone;
  if (first >= 0) edges_[first].previous[d] = edge;
  side.first = edge;
  if (++side.degree > kShort && !side.is_long) MakeLong(d, node);
}

void GraphCycles::MakeLong(Direction d, int32_t node) {
  nodes_[node].sides[d].is_long = 1;
  for (int32_t e = First(d, node); e >= 0; e = edges_[e].next[d]) {
    const auto& ends = edges_[e].ends;
    if (IsLong(Reverse(d), ends[d])) table_.Insert(ends[kIn], ends[kOut], e);
  }
}

int32_t GraphCycles::Find(int32_t from, int32_t to) const {
  for (Direction d : {kIn, kOut}) {
    const int32_t node = d == kIn ? to : from, far = d == kIn ? from : to;
    if (IsLong(d, node)) continue;
    int32_t e = First(d, node);
    while (e >= 0 && edges_[e].ends[d] != far) e = edges_[e].next[d];
    return e;
  }
  return table_.Find(from, to);
}

void GraphCycles::Detach(Direction d, int32_t edge) {
  const Edge& e = edges_[edge];
  int32_t node = e.ends[Reverse(d)];
  if (e.previous[d] >= 0) {
    edges_[e.previous[d]].next[d] = e.next[d];
  } else {
    nodes_[node].sides[d].first = e.next[d];
  }
  if (e.next[d] >= 0) edges_[e.next[d]].previous[d] = e.previous[d];
  --nodes_[node].sides[d].degree;
}

void GraphCycles::Link(int32_t from, int32_t to) {
  int32_t edge;
  if (free_edges_.empty()) {
    edge = static_cast<int32_t>(edges_.size());
    edges_.emplace_back();
  } else {
    edge = free_edges_.back();
    free_edges_.pop_back();
  }
  edges_[edge].ends[kOut] = to;
  edges_[edge].ends[kIn] = from;
  edges_[edge].detour = kNone;
  Push(kOut, from, edge);
  Push(kIn, to, edge);
  if (IsInTable(from, to)) table_.Insert(from, to, edge);
}

bool GraphCycles::AddEdge(int32_t from, int32_t to) {
  if (from == to) return false;
  if (HasEdge(from, to)) return true;
  if (Label(from) > Label(to) && !Exchange(to, from, kNone)) return false;
  Link(from, to);
  return true;
}

void GraphCycles::Unlink(int32_t edge) {
  const auto& ends = edges_[edge].ends;
  if (IsInTable(ends[kIn], ends[kOut])) table_.Erase(ends[kIn], ends[kOut]);
  Detach(kOut, edge);
  Detach(kIn, edge);
  free_edges_.push_back(edge);
}

bool GraphCycles::HasDetour(int32_t edge) {
  if (edges_[edge].detour == kNone) return false;
  const int32_t node = edges_[edge].detour = NodeOf(edges_[edge].detour);
  return node != edges_[edge].ends[kIn] && node != edges_[edge].ends[kOut];
}

std::optional<int32_t> GraphCycles::Contract(int32_t a, int32_t b) {
  if (a == b) return a;
  if (Label(a) > Label(b)) std::swap(a, b);
  const int32_t edge = Find(a, b);
  if (edge != kNone && HasDetour(edge)) return std::nullopt;
  if (!Exchange(a, b, edge)) {
    if (edge != kNone) edges_[edge].detour = detour_;
    return std::nullopt;
  }
  if (edge != kNone) Unlink(edge);
  auto edges = [&](int32_t node) { return Degree(kOut, node) + Degree(kIn, node); };
  int32_t kept = edges(a) >= edges(b) ? a : b, gone = kept == a ? b : a;
  parents_[gone] = kept;
  Absorb(kept, gone);
  // The two are neighbours.
  TakeOut(gone);
  return kept;
}

void GraphCycles::Absorb(int32_t kept, int32_t gone) {
  for (Direction d : {kOut, kIn}) {
    for (int32_t e = First(d, gone), next; e >= 0; e = next) {
      next = edges_[e].next[d];
      const int32_t far = edges_[e].ends[d];
      const auto [old_from, old_to] = std::pair(edges_[e].ends[kIn], edges_[e].ends[kOut]);
      if (IsInTable(old_from, old_to)) table_.Erase(old_from, old_to);
      const auto [from, to] = d == kOut ? std::pair(kept, far) : std::pair(far, kept);
      if (const int32_t known = Find(from, to); known == kNone) {
        edges_[e].ends[Reverse(d)] = kept;
        Push(d, kept, e);
        if (IsInTable(from, to)) table_.Insert(from, to, e);
      } else {
        if (!HasDetour(known)) edges_[known].detour = edges_[e].detour;
        Detach(Reverse(d), e);
        free_edges_.push_back(e);
      }
    }
    nodes_[gone].sides[d].first = kNone;
    nodes_[gone].sides[d].degree = 0;
  }
}

bool GraphCycles::Advance(Direction d) {
  Search& s = searches_[d];
  auto later = [&](int32_t a, int32_t b) {
    return d == kOut ? Label(a) > Label(b) : Label(a) < Label(b);
  };
  while (s.edge == kNone) {
    if (s.node != kNone) s.done.push_back(std::exchange(s.node, kNone));
    if (s.heap.empty()) return false;
    std::ranges::pop_heap(s.heap, later);
    s.node = s.heap.back();
    s.heap.pop_back();
    s.edge = First(d, s.node);
  }
  return true;
}

bool GraphCycles::Walk(Direction d, int32_t low, int32_t high, int32_t ignored) {
  Search& s = searches_[d];
  int32_t edge = std::exchange(s.edge, edges_[s.edge].next[d]), node = edges_[edge].ends[d];
  if (edge == ignored) return false;
  const bool is_end = node == low || node == high;
  if (Seen(Reverse(d), node) == search_) {
    detour_ = is_end ? s.node : node;
    return true;
  }
  const bool is_between = Label(node) > Label(low) && Label(node) < Label(high);
  if (!is_between || Seen(d, node) == search_) return false;
  if (IsLong(d, node) && (d == kOut ? HasEdge(node, high) : HasEdge(low, node))) {
    detour_ = node;
    return true;
  }
  Seen(d, node) = search_;
  s.heap.push_back(node);
  std::ranges::push_heap(s.heap, [&](int32_t a, int32_t b) {
    return d == kOut ? Label(a) > Label(b) : Label(a) < Label(b);
  });
  return false;
}

bool GraphCycles::FindPath(int32_t from, int32_t to, int32_t ignored) {
  if (++search_ == 0) {
    for (Node& node : nodes_) node.sides[kOut].seen = node.sides[kIn].seen = 0;
    search_ = 1;
  }
  for (Direction d : {kOut, kIn}) {
    int32_t first = d == kOut ? from : to;
    Search& s = searches_[d];
    s.heap.assign(1, first);
    s.node = s.edge = kNone;
    s.done.clear();
    Seen(d, first) = search_;
  }
  while (Advance(kOut) && Advance(kIn)) {
    // A node on a path would have been found from both ends.
    if (Label(searches_[kOut].node) > Label(searches_[kIn].node)) return false;
    for (Direction d : {kOut, kIn}) {
      if (Walk(d, from, to, ignored)) return true;
    }
  }
  return false;
}

bool GraphCycles::Exchange(int32_t first, int32_t second, int32_t ignored) {
  if (FindPath(first, second, ignored)) return false;
  Search &out = searches_[kOut], &in = searches_[kIn];
  auto by_label = [&](int32_t node) { return Label(node); };
  std::vector<int32_t>& moving = in.done;
  if (out.node == kNone) {
    // All successors of the first are known: they move behind the second.
    std::ranges::sort(out.done, {}, by_label);
    for (int32_t node : out.done) TakeOut(node);
    InsertBehind(second, out.done);
  } else if (in.node == kNone) {
    std::ranges::sort(moving, {}, by_label);
    for (int32_t node : moving) TakeOut(node);
    InsertBehind(previous_[first], moving);
  } else {
    // To the place before the node at hand of the forward search: predecessors of the second that
    // are behind it, and successors of the first, which are all before it.
    const int32_t place = out.node;
    std::erase_if(moving, [&](int32_t node) { return Label(node) < Label(place); });
    std::ranges::sort(moving, {}, by_label);
    std::ranges::sort(out.done, {}, by_label);
    moving.insert(moving.end(), out.done.begin(), out.done.end());
    for (int32_t node : moving) TakeOut(node);
    InsertBehind(previous_[place], moving);
  }
  return true;
}

bool GraphCycles::IsReachable(int32_t from, int32_t to) {
  if (from == to) return true;
  return Label(from) < Label(to) && FindPath(from, to, kNone);
}

std::vector<int32_t> GraphCycles::Between(int32_t from, int32_t to) const {
  std::vector<bool> reached[2] = {std::vector<bool>(nodes_.size()),
                                  std::vector<bool>(nodes_.size())};
  std::vector<int32_t> nodes;
  for (Direction d : {kOut, kIn}) {
    nodes.assign(1, d == kOut ? from : to);
    reached[d][nodes[0]] = true;
    for (size_t at = 0; at < nodes.size(); ++at) {
      for (int32_t e = First(d, nodes[at]); e >= 0; e = edges_[e].next[d]) {
        int32_t node = edges_[e].ends[d];
        if (reached[d][node] || Label(node) < Label(from) || Label(node) > Label(to)) {
          continue;
        }
        reached[d][node] = true;
        nodes.push_back(node);
      }
    }
  }
  std::erase_if(nodes, [&](int32_t node) { return !reached[kOut][node]; });
  std::ranges::sort(nodes, {}, [&](int32_t node) { return Label(node); });
  return nodes;
}

std::vector<int32_t> GraphCycles::Order() const {
  std::vector<int32_t> order;
  for (int32_t node = next_[head()]; node != tail(); node = next_[node]) order.push_back(node);
  return order;
}

void GraphCycles::TakeOut(int32_t node) {
  next_[previous_[node]] = next_[node];
  previous_[next_[node]] = previous_[node];
  next_[node] = kNone;
}

void GraphCycles::LinkAfter(int32_t place, int32_t node, uint64_t label) {
  nodes_[node].label = label;
  next_[node] = next_[place];
  previous_[node] = place;
  previous_[next_[place]] = node;
  next_[place] = node;
}

void GraphCycles::InsertBehind(int32_t place, std::span<const int32_t> nodes) {
  uint64_t step = (Label(next_[place]) - Label(place)) / (nodes.size() + 1);
  for (int32_t node : nodes) {
    if (step == 0 && Label(next_[place]) - Label(place) < 2) MakeRoomBehind(place);
    uint64_t room = Label(next_[place]) - Label(place);
    LinkAfter(place, node, Label(place) + (step > 0 ? step : room / 2));
    place = node;
  }
}

// Spreads the labels of the smallest range around the place, a power of two in size, that is
// sparse enough. Larger ranges have to be sparser, so the next time is far away.
void GraphCycles::MakeRoomBehind(int32_t place) {
  // The head keeps its label.
  if (place == head()) place = next_[place];
  int32_t first = place, last = place;
  uint64_t count = 1;
  double most = 1;
  for (int bits = 1; bits <= kLabelBits; ++bits) {
    uint64_t size = uint64_t{1} << bits, low = Label(place) / size * size;
    while (previous_[first] != head() && Label(previous_[first]) >= low) {
      first = previous_[first];
      ++count;
    }
    while (next_[last] != tail() && Label(next_[last]) < low + size) {
      last = next_[last];
      ++count;
    }
    most *= 1.5;
    uint64_t step = size / (count + 1);
    if (static_cast<double>(count) > most || step < 2) continue;
    uint64_t label = low;
    for (int32_t node = first; node != next_[last]; node = next_[node]) {
      nodes_[node].label = label += step;
    }
    return;
  }
}

}  // namespace kiln::session

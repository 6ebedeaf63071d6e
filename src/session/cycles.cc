#include "session/cycles.h"

#include <algorithm>
#include <utility>

namespace kiln::session {
namespace {

constexpr int kLabelBits = 62;
constexpr uint64_t kLastLabel = uint64_t{1} << kLabelBits;

}  // namespace

GraphCycles::GraphCycles(int32_t node_count) {
  const size_t n = static_cast<size_t>(node_count);
  for (int d : {kOut, kIn}) {
    heads_[d].assign(n, kNone);
    degrees_[d].assign(n, 0);
    is_long_[d].assign(n, false);
    seen_[d].assign(n, 0);
  }
  next_.resize(n + 2);
  previous_.resize(n + 2);
  labels_.resize(n + 2);
  next_[tail()] = previous_[head()] = kNone;
  labels_[tail()] = kLastLabel;
  int32_t last = head();
  for (int32_t node = 0; node <= node_count; ++node) {
    int32_t at = node < node_count ? node : tail();
    if (at != tail()) labels_[at] = (static_cast<uint64_t>(node) + 1) * (kLastLabel / (n + 1));
    next_[last] = at;
    previous_[at] = last;
    last = at;
  }
}

std::vector<int32_t> GraphCycles::Neighbours(Direction d, int32_t node) const {
  std::vector<int32_t> all;
  all.reserve(static_cast<size_t>(degrees_[d][node]));
  for (int32_t e = heads_[d][node]; e >= 0; e = edges_[e].next[d]) all.push_back(edges_[e].ends[d]);
  return all;
}

void GraphCycles::Push(Direction d, int32_t node, int32_t edge) {
  int32_t first = heads_[d][node];
  edges_[edge].next[d] = first;
  edges_[edge].previous[d] = kNone;
  if (first >= 0) edges_[first].previous[d] = edge;
  heads_[d][node] = edge;
  if (++degrees_[d][node] > kShort && !is_long_[d][node]) MakeLong(d, node);
}

void GraphCycles::MakeLong(Direction d, int32_t node) {
  is_long_[d][node] = true;
  for (int32_t e = heads_[d][node]; e >= 0; e = edges_[e].next[d]) {
    const auto& ends = edges_[e].ends;
    if (is_long_[Reverse(d)][ends[d]]) table_.Insert(ends[kIn], ends[kOut], e);
  }
}

int32_t GraphCycles::Find(int32_t from, int32_t to) const {
  for (Direction d : {kIn, kOut}) {
    const int32_t node = d == kIn ? to : from, far = d == kIn ? from : to;
    if (is_long_[d][node]) continue;
    int32_t e = heads_[d][node];
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
    heads_[d][node] = e.next[d];
  }
  if (e.next[d] >= 0) edges_[e.next[d]].previous[d] = e.previous[d];
  --degrees_[d][node];
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
  Push(kOut, from, edge);
  Push(kIn, to, edge);
  if (IsInTable(from, to)) table_.Insert(from, to, edge);
}

bool GraphCycles::AddEdge(int32_t from, int32_t to) {
  if (from == to) return false;
  if (HasEdge(from, to)) return true;
  if (labels_[from] > labels_[to] && !Exchange(to, from, kNone)) return false;
  Link(from, to);
  return true;
}

bool GraphCycles::RemoveEdge(int32_t from, int32_t to) {
  const int32_t edge = Find(from, to);
  if (edge == kNone) return false;
  if (IsInTable(from, to)) table_.Erase(from, to);
  Detach(kOut, edge);
  Detach(kIn, edge);
  free_edges_.push_back(edge);
  return true;
}

std::optional<int32_t> GraphCycles::Contract(int32_t a, int32_t b) {
  if (a == b) return a;
  if (labels_[a] > labels_[b]) std::swap(a, b);
  if (!Exchange(a, b, Find(a, b))) return std::nullopt;
  RemoveEdge(a, b);
  auto edges = [&](int32_t node) { return degrees_[kOut][node] + degrees_[kIn][node]; };
  int32_t kept = edges(a) >= edges(b) ? a : b, gone = kept == a ? b : a;
  Absorb(kept, gone);
  // The two are neighbours.
  Unlink(gone);
  return kept;
}

void GraphCycles::Absorb(int32_t kept, int32_t gone) {
  for (Direction d : {kOut, kIn}) {
    for (int32_t e = heads_[d][gone], next; e >= 0; e = next) {
      next = edges_[e].next[d];
      const int32_t far = edges_[e].ends[d];
      const auto [old_from, old_to] = std::pair(edges_[e].ends[kIn], edges_[e].ends[kOut]);
      if (IsInTable(old_from, old_to)) table_.Erase(old_from, old_to);
      const auto [from, to] = d == kOut ? std::pair(kept, far) : std::pair(far, kept);
      if (Find(from, to) == kNone) {
        edges_[e].ends[Reverse(d)] = kept;
        Push(d, kept, e);
        if (IsInTable(from, to)) table_.Insert(from, to, e);
      } else {
        Detach(Reverse(d), e);
        free_edges_.push_back(e);
      }
    }
    heads_[d][gone] = kNone;
    degrees_[d][gone] = 0;
  }
}

bool GraphCycles::Advance(Direction d) {
  Search& s = searches_[d];
  auto later = [&](int32_t a, int32_t b) {
    return d == kOut ? labels_[a] > labels_[b] : labels_[a] < labels_[b];
  };
  while (s.edge == kNone) {
    if (s.node != kNone) s.done.push_back(std::exchange(s.node, kNone));
    if (s.heap.empty()) return false;
    std::ranges::pop_heap(s.heap, later);
    s.node = s.heap.back();
    s.heap.pop_back();
    s.edge = heads_[d][s.node];
  }
  return true;
}

bool GraphCycles::Walk(Direction d, int32_t low, int32_t high, int32_t ignored) {
  Search& s = searches_[d];
  int32_t edge = std::exchange(s.edge, edges_[s.edge].next[d]), node = edges_[edge].ends[d];
  if (edge == ignored) return false;
  if (seen_[Reverse(d)][node] == search_) return true;
  if (labels_[node] > labels_[low] && labels_[node] < labels_[high] && seen_[d][node] != search_) {
    seen_[d][node] = search_;
    s.heap.push_back(node);
    std::ranges::push_heap(s.heap, [&](int32_t a, int32_t b) {
      return d == kOut ? labels_[a] > labels_[b] : labels_[a] < labels_[b];
    });
  }
  return false;
}

bool GraphCycles::FindPath(int32_t from, int32_t to, int32_t ignored) {
  if (++search_ == 0) {
    for (auto& seen : seen_) std::ranges::fill(seen, 0);
    search_ = 1;
  }
  for (Direction d : {kOut, kIn}) {
    int32_t first = d == kOut ? from : to;
    Search& s = searches_[d];
    s.heap.assign(1, first);
    s.node = s.edge = kNone;
    s.done.clear();
    seen_[d][first] = search_;
  }
  while (Advance(kOut) && Advance(kIn)) {
    // A node on a path would have been found from both ends.
    if (labels_[searches_[kOut].node] > labels_[searches_[kIn].node]) return false;
    for (Direction d : {kOut, kIn}) {
      if (Walk(d, from, to, ignored)) return true;
    }
  }
  return false;
}

bool GraphCycles::Exchange(int32_t first, int32_t second, int32_t ignored) {
  if (FindPath(first, second, ignored)) return false;
  Search &out = searches_[kOut], &in = searches_[kIn];
  auto by_label = [&](int32_t node) { return labels_[node]; };
  std::vector<int32_t>& moving = in.done;
  if (out.node == kNone) {
    // All successors of the first are known: they move behind the second.
    std::ranges::sort(out.done, {}, by_label);
    for (int32_t node : out.done) Unlink(node);
    InsertBehind(second, out.done);
  } else if (in.node == kNone) {
    std::ranges::sort(moving, {}, by_label);
    for (int32_t node : moving) Unlink(node);
    InsertBehind(previous_[first], moving);
  } else {
    // To the place before the node at hand of the forward search: predecessors of the second that
    // are behind it, and successors of the first, which are all before it.
    const int32_t place = out.node;
    std::erase_if(moving, [&](int32_t node) { return labels_[node] < labels_[place]; });
    std::ranges::sort(moving, {}, by_label);
    std::ranges::sort(out.done, {}, by_label);
    moving.insert(moving.end(), out.done.begin(), out.done.end());
    for (int32_t node : moving) Unlink(node);
    InsertBehind(previous_[place], moving);
  }
  return true;
}

bool GraphCycles::IsReachable(int32_t from, int32_t to) {
  if (from == to) return true;
  return labels_[from] < labels_[to] && FindPath(from, to, kNone);
}

std::vector<int32_t> GraphCycles::Between(int32_t from, int32_t to) const {
  std::vector<bool> reached[2] = {std::vector<bool>(heads_[kOut].size()),
                                  std::vector<bool>(heads_[kOut].size())};
  std::vector<int32_t> nodes;
  for (Direction d : {kOut, kIn}) {
    nodes.assign(1, d == kOut ? from : to);
    reached[d][nodes[0]] = true;
    for (size_t at = 0; at < nodes.size(); ++at) {
      for (int32_t e = heads_[d][nodes[at]]; e >= 0; e = edges_[e].next[d]) {
        int32_t node = edges_[e].ends[d];
        if (reached[d][node] || labels_[node] < labels_[from] || labels_[node] > labels_[to]) {
          continue;
        }
        reached[d][node] = true;
        nodes.push_back(node);
      }
    }
  }
  std::erase_if(nodes, [&](int32_t node) { return !reached[kOut][node]; });
  std::ranges::sort(nodes, {}, [&](int32_t node) { return labels_[node]; });
  return nodes;
}

std::vector<int32_t> GraphCycles::Order() const {
  std::vector<int32_t> order;
  for (int32_t node = next_[head()]; node != tail(); node = next_[node]) order.push_back(node);
  return order;
}

void GraphCycles::Unlink(int32_t node) {
  next_[previous_[node]] = next_[node];
  previous_[next_[node]] = previous_[node];
  next_[node] = kNone;
}

void GraphCycles::LinkAfter(int32_t place, int32_t node, uint64_t label) {
  labels_[node] = label;
  next_[node] = next_[place];
  previous_[node] = place;
  previous_[next_[place]] = node;
  next_[place] = node;
}

void GraphCycles::InsertBehind(int32_t place, std::span<const int32_t> nodes) {
  uint64_t step = (labels_[next_[place]] - labels_[place]) / (nodes.size() + 1);
  for (int32_t node : nodes) {
    if (step == 0 && labels_[next_[place]] - labels_[place] < 2) MakeRoomBehind(place);
    uint64_t room = labels_[next_[place]] - labels_[place];
    LinkAfter(place, node, labels_[place] + (step > 0 ? step : room / 2));
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
    uint64_t size = uint64_t{1} << bits, low = labels_[place] / size * size;
    while (previous_[first] != head() && labels_[previous_[first]] >= low) {
      first = previous_[first];
      ++count;
    }
    while (next_[last] != tail() && labels_[next_[last]] < low + size) {
      last = next_[last];
      ++count;
    }
    most *= 1.5;
    uint64_t step = size / (count + 1);
    if (static_cast<double>(count) > most || step < 2) continue;
    uint64_t label = low;
    for (int32_t node = first; node != next_[last]; node = next_[node]) {
      labels_[node] = label += step;
    }
    return;
  }
}

}  // namespace kiln::session

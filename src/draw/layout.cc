#include "draw/layout.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace kiln::draw {
namespace {

// A link that passes more ranks has no bends, and all together have no more than so many per box.
constexpr int kMostRanksPassed = 40;
constexpr size_t kMostBendsPerBox = 6;
constexpr int kOrderSweeps = 8, kPlaceSweeps = 10;
// Bends are heavier: long links are straight.
constexpr double kBendWeight = 4;

// Items that are one above the other and linked, by item.
class Neighbours {
 public:
  Neighbours(size_t items, const std::vector<Link>& pieces, bool above) {
    begin_.assign(items + 1, 0);
    for (const Link& p : pieces) ++begin_[static_cast<size_t>(above ? p.to : p.from) + 1];
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    items_.resize(pieces.size());
    std::vector<size_t> next(begin_.begin(), begin_.end() - 1);
    for (const Link& p : pieces) {
      items_[next[static_cast<size_t>(above ? p.to : p.from)]++] = above ? p.from : p.to;
    }
  }
  std::span<const int> Of(int item) const {
    const size_t begin = begin_[static_cast<size_t>(item)];
    return {items_.data() + begin, begin_[static_cast<size_t>(item) + 1] - begin};
  }

 private:
  std::vector<size_t> begin_;
  std::vector<int> items_;
};

// The longest paths from the top; then what has no more operands than users moves down to its
// users, as parameters and constants do.
std::vector<int> RanksOf(size_t count, std::span<const Link> links) {
  std::vector<int> ranks(count, 0), in(count, 0), out(count, 0);
  std::vector<Link> by_from(links.begin(), links.end());
  std::ranges::stable_sort(by_from, {}, &Link::from);
  for (const Link& l : by_from) {
    int& rank = ranks[static_cast<size_t>(l.to)];
    rank = std::max(rank, ranks[static_cast<size_t>(l.from)] + 1);
    ++out[static_cast<size_t>(l.from)];
    ++in[static_cast<size_t>(l.to)];
  }
  for (size_t end = by_from.size(); end > 0;) {
    const auto from = static_cast<size_t>(by_from[end - 1].from);
    int lowest = INT32_MAX;
    for (; end > 0 && by_from[end - 1].from == static_cast<int>(from); --end) {
      lowest = std::min(lowest, ranks[static_cast<size_t>(by_from[end - 1].to)] - 1);
    }
    if (in[from] <= out[from]) ranks[from] = std::max(ranks[from], lowest);
  }
  return ranks;
}

// The new middles of items in a rank: nearest to `wanted` by weighted squares, in their order and
// without overlaps (regression by pooling neighbours that would violate the order).
void Separate(std::span<const int> items, const std::vector<double>& widths,
              const std::vector<double>& wanted, size_t boxes, std::vector<double>& x) {
  struct Pool {
    double sum, weight;
    size_t count;
    double mean() const { return sum / weight; }
  };
  std::vector<Pool> pools;
  std::vector<double> offsets(items.size());
  for (size_t k = 0; k < items.size(); ++k) {
    const auto item = static_cast<size_t>(items[k]);
    if (k > 0) {
      const double between = (widths[static_cast<size_t>(items[k - 1])] + widths[item]) / 2;
      offsets[k] = offsets[k - 1] + between + kBoxGap;
    }
    const double weight = item < boxes ? 1 : kBendWeight;
    Pool pool{(wanted[item] - offsets[k]) * weight, weight, 1};
    while (!pools.empty() && pools.back().mean() >= pool.mean()) {
      pool = {pool.sum + pools.back().sum, pool.weight + pools.back().weight,
              pool.count + pools.back().count};
      pools.pop_back();
    }
    pools.push_back(pool);
  }
  size_t k = 0;
  for (const Pool& pool : pools) {
    for (size_t i = 0; i < pool.count; ++i, ++k) {
      x[static_cast<size_t>(items[k])] = pool.mean() + offsets[k];
    }
  }
}

class Layouter {
 public:
  Layouter(std::span<const Box> boxes, std::span<const Link> links)
      : boxes_(boxes), links_(links), ranks_(RanksOf(boxes.size(), links)) {}

  Layout LayOut() {
    for (const Box& box : boxes_) widths_.push_back(box.width);
    AddBends();
    Fill();
    const Neighbours above(widths_.size(), pieces_, true), below(widths_.size(), pieces_, false);
    Order(above, below);
    PlaceItems(above, below);
    layout_.rank = std::move(ranks_);
    return std::move(layout_);
  }

 private:
  // Bends for links that pass ranks, short ones first, and the pieces between them.
  void AddBends() {
    std::vector<size_t> order(links_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto passed = [&](size_t k) {
      return ranks_[static_cast<size_t>(links_[k].to)] -
             ranks_[static_cast<size_t>(links_[k].from)] - 1;
    };
    std::ranges::stable_sort(order, {}, passed);
    std::vector<int> bends(links_.size(), 0);
    size_t left = kMostBendsPerBox * boxes_.size();
    for (size_t k : order) {
      const int count = passed(k);
      if (count > kMostRanksPassed || static_cast<size_t>(count) > left) break;
      bends[k] = count;
      left -= static_cast<size_t>(count);
    }
    for (size_t k = 0; k < links_.size(); ++k) {
      layout_.first_bend.push_back(static_cast<int>(widths_.size()));
      int from = links_[k].from;
      const int rank = ranks_[static_cast<size_t>(from)];
      if (bends[k] != passed(k)) continue;
      for (int b = 0; b < bends[k]; ++b) {
        const int bend = static_cast<int>(widths_.size());
        widths_.push_back(kBendWidth);
        ranks_.push_back(rank + 1 + b);
        pieces_.push_back({from, bend});
        from = bend;
      }
      pieces_.push_back({from, links_[k].to});
    }
    layout_.first_bend.push_back(static_cast<int>(widths_.size()));
  }

  void Fill() {
    for (size_t item = 0; item < ranks_.size(); ++item) {
      const auto rank = static_cast<size_t>(ranks_[item]);
      if (rank >= layout_.ranks.size()) layout_.ranks.resize(rank + 1);
      layout_.ranks[rank].push_back(static_cast<int>(item));
    }
  }

  // Crossings of pieces between a rank and the next: pairs in different orders at their two ends.
  int64_t CrossingsBelow(const std::vector<int>& rank, size_t width, const Neighbours& below,
                         const std::vector<int>& position) const {
    std::vector<int64_t> tree(width + 1, 0);
    int64_t crossings = 0, seen = 0;
    std::vector<int> ends;
    for (int item : rank) {
      ends.clear();
      for (int to : below.Of(item)) ends.push_back(position[static_cast<size_t>(to)]);
      for (int end : ends) {
        int64_t not_right = 0;
        for (int at = end + 1; at > 0; at -= at & -at) not_right += tree[static_cast<size_t>(at)];
        crossings += seen - not_right;
      }
      for (int end : ends) {
        ++seen;
        for (size_t at = static_cast<size_t>(end) + 1; at <= width; at += at & (~at + 1))
          ++tree[at];
      }
    }
    return crossings;
  }

  int64_t Crossings(const Neighbours& below, const std::vector<int>& position) const {
    int64_t crossings = 0;
    for (size_t r = 0; r + 1 < layout_.ranks.size(); ++r) {
      crossings += CrossingsBelow(layout_.ranks[r], layout_.ranks[r + 1].size(), below, position);
    }
    return crossings;
  }

  // Ranks sorted by the mean position of the neighbours, down and up; the best order is kept.
  void Order(const Neighbours& above, const Neighbours& below) {
    std::vector<int> position(widths_.size());
    const auto number = [&](const std::vector<int>& rank) {
      for (size_t k = 0; k < rank.size(); ++k) {
        position[static_cast<size_t>(rank[k])] = static_cast<int>(k);
      }
    };
    std::ranges::for_each(layout_.ranks, number);
    std::vector<std::vector<int>> best = layout_.ranks;
    int64_t least = Crossings(below, position);
    std::vector<std::pair<double, int>> keyed;
    for (int sweep = 0; sweep < kOrderSweeps && least > 0; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t r = 0; r < layout_.ranks.size(); ++r) {
        std::vector<int>& rank = layout_.ranks[down ? r : layout_.ranks.size() - 1 - r];
        keyed.clear();
        for (int item : rank) {
          const std::span<const int> near = (down ? above : below).Of(item);
          double sum = 0;
          for (int n : near) sum += position[static_cast<size_t>(n)];
          keyed.emplace_back(near.empty() ? position[static_cast<size_t>(item)]
                                          : sum / static_cast<double>(near.size()),
                             item);
        }
        std::ranges::stable_sort(keyed, {}, &std::pair<double, int>::first);
        for (size_t k = 0; k < rank.size(); ++k) rank[k] = keyed[k].second;
        number(rank);
      }
      const int64_t crossings = Crossings(below, position);
      if (crossings >= least) continue;
      least = crossings;
      best = layout_.ranks;
    }
    layout_.ranks = std::move(best);
  }

  // Items go to the mean of their neighbours, rank by rank, down and up.
  void PlaceItems(const Neighbours& above, const Neighbours& below) {
    std::vector<double>& x = layout_.x;
    x.assign(widths_.size(), 0);
    for (const std::vector<int>& rank : layout_.ranks) {
      Separate(rank, widths_, x, boxes_.size(), x);
    }
    std::vector<double> wanted = x;
    for (int sweep = 0; sweep < kPlaceSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t r = 0; r < layout_.ranks.size(); ++r) {
        const std::vector<int>& rank = layout_.ranks[down ? r : layout_.ranks.size() - 1 - r];
        for (int item : rank) {
          const auto at = static_cast<size_t>(item);
          // Where nothing is on this side, the other one counts.
          std::span<const int> near = (down ? above : below).Of(item);
          if (near.empty()) near = (down ? below : above).Of(item);
          double sum = 0;
          for (int n : near) sum += x[static_cast<size_t>(n)];
          wanted[at] = near.empty() ? x[at] : sum / static_cast<double>(near.size());
        }
        Separate(rank, widths_, wanted, boxes_.size(), x);
      }
    }
  }

  const std::span<const Box> boxes_;
  const std::span<const Link> links_;
  std::vector<int> ranks_;      // of items
  std::vector<double> widths_;  // of items
  std::vector<Link> pieces_;    // of links, from a rank to the next
  Layout layout_;
};

}  // namespace

Layout LayOut(std::span<const Box> boxes, std::span<const Link> links) {
  return Layouter(boxes, links).LayOut();
}

Placed Place(const Layout& layout, std::span<const Box> boxes) {
  std::vector<double> widths(layout.x.size(), kBendWidth);
  for (size_t k = 0; k < boxes.size(); ++k) widths[k] = boxes[k].width;
  Placed placed;
  placed.x = layout.x;
  double left = 0, right = 0, y = 0;
  bool is_first = true;
  for (const std::vector<int>& rank : layout.ranks) {
    Separate(rank, widths, layout.x, boxes.size(), placed.x);
    double height = 0;
    for (int item : rank) {
      const auto at = static_cast<size_t>(item);
      if (at < boxes.size()) height = std::max(height, boxes[at].height);
      const double half = widths[at] / 2;
      left = is_first ? placed.x[at] - half : std::min(left, placed.x[at] - half);
      right = is_first ? placed.x[at] + half : std::max(right, placed.x[at] + half);
      is_first = false;
    }
    placed.top.push_back(y);
    placed.bottom.push_back(y + height);
    y += height + kRankGap;
  }
  for (double& x : placed.x) x -= left;
  placed.width = right - left;
  placed.height = placed.bottom.empty() ? 0 : placed.bottom.back();
  return placed;
}

}  // namespace kiln::draw

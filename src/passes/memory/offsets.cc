#include "passes/memory/offsets.h"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "base/spread.h"

namespace kiln::passes {
namespace {

// Looking at each pair of more buffers than this would take longer than the memory is worth.
constexpr size_t kMaxForPairs = 2048;

// Smaller buffers are not worth a search for memory outside of the arena.
constexpr int64_t kLeastInResults = int64_t{1} << 16;

// A smaller arena is in the first cache, and a spread one may be larger by so small a part.
constexpr int64_t kLeastSpread = int64_t{1} << 15, kSpreadPart = 64;

struct Item {
  size_t buffer;
  int64_t begin, end, bytes;
  int64_t offset = 0;
  size_t host = 0;  // the result in whose memory it is, a buffer
};

// The peak of live bytes: a lower bound of the arena.
int64_t MostLive(const std::vector<Item>& items) {
  std::map<int64_t, int64_t> change;
  for (const Item& i : items) {
    change[i.begin] += i.bytes;
    change[i.end + 1] -= i.bytes;
  }
  int64_t live = 0, most = 0;
  for (auto [at, bytes] : change) most = std::max(most, live += bytes);
  return most;
}

// Free pieces of the arena, joined where they touch.
class FreeList {
 public:
  void Release(int64_t offset, int64_t bytes) {
    auto next = blocks_.lower_bound(offset);
    if (next != blocks_.end() && offset + bytes == next->first) {
      bytes += next->second;
      next = blocks_.erase(next);
    }
    if (next != blocks_.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += bytes;
        return;
      }
    }
    blocks_[offset] = bytes;
  }

  // The smallest free piece of sufficient size. If there is none the arena grows, from its last
  // piece if it is free.
  int64_t Take(int64_t bytes) {
    auto best = blocks_.end();
    for (auto it = blocks_.begin(); it != blocks_.end(); ++it) {
      if (it->second >= bytes && (best == blocks_.end() || it->second < best->second)) best = it;
    }
    if (best != blocks_.end()) {
      auto [offset, size] = *best;
      blocks_.erase(best);
      if (size > bytes) blocks_[offset + bytes] = size - bytes;
      return offset;
    }
    int64_t offset = arena_;
    if (!blocks_.empty()) {
      auto last = std::prev(blocks_.end());
      if (last->first + last->second == arena_) {
        offset = last->first;
        blocks_.erase(last);
      }
    }
    arena_ = offset + bytes;
    return offset;
  }

  int64_t arena() const { return arena_; }

 private:
  std::map<int64_t, int64_t> blocks_;  // offset -> bytes
  int64_t arena_ = 0;
};

// The best fit in the order of time.
int64_t BestFit(std::vector<Item>& items) {
  std::ranges::stable_sort(items, [](const Item& a, const Item& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.bytes > b.bytes;
  });
  FreeList free;
  std::multimap<int64_t, const Item*> live;  // by end
  for (Item& i : items) {
    while (!live.empty() && live.begin()->first < i.begin) {
      free.Release(live.begin()->second->offset, live.begin()->second->bytes);
      live.erase(live.begin());
    }
    i.offset = free.Take(i.bytes);
    live.emplace(i.end, &i);
  }
  return free.arena();
}

// Items with their places, in the order of these.
class Placed {
 public:
  // The lowest place that is free for as long as the item lives.
  int64_t LowestFor(const Item& item) const {
    int64_t offset = 0;
    for (const Place& other : places_) {
      if (other.offset >= offset + item.bytes) break;
      if (other.begin > item.end || item.begin > other.end) continue;
      offset = std::max(offset, other.offset + other.bytes);
    }
    return offset;
  }
  void Add(const Item& item) {
    const auto at = std::ranges::upper_bound(places_, item.offset, {}, &Place::offset);
    places_.insert(at, {item.offset, item.bytes, item.begin, item.end});
  }

 private:
  struct Place {
    int64_t offset, bytes, begin, end;
  };
  std::vector<Place> places_;
};

// In the order given, each at the lowest place.
int64_t LowestFit(std::vector<Item>& items) {
  Placed placed;
  int64_t arena = 0;
  for (Item& i : items) {
    i.offset = placed.LowestFor(i);
    placed.Add(i);
    arena = std::max(arena, i.offset + i.bytes);
  }
  return arena;
}

// The bytes of an arena for all of them, and their places in it.
int64_t Arrange(std::vector<Item>& best) {
  int64_t arena = BestFit(best);
  // Other orders are tried only where holes are left.
  if (best.size() <= kMaxForPairs && arena > MostLive(best)) {
    auto attempt = [&](auto&& before) {
      std::vector<Item> items = best;
      std::ranges::stable_sort(items, before);
      if (int64_t bytes = LowestFit(items); bytes < arena) {
        arena = bytes;
        best = std::move(items);
      }
    };
    attempt([](const Item& a, const Item& b) { return a.bytes > b.bytes; });
    attempt([](const Item& a, const Item& b) {
      return a.bytes * (a.end - a.begin + 1) > b.bytes * (b.end - b.begin + 1);
    });
    attempt([](const Item& a, const Item& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.buffer < b.buffer;
    });
  }
  return arena;
}

// The memory of a result, which is free until it is made.
struct Host {
  size_t result;  // a buffer
  int64_t begin, bytes;
  Placed items;
};

std::vector<Host> HostsOf(std::span<const Buffer> buffers) {
  std::vector<Host> hosts;
  for (size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].kind != Buffer::Kind::kResult || buffers[b].bytes < kLeastInResults) continue;
    hosts.push_back({b, buffers[b].begin, buffers[b].bytes, {}});
  }
  // What dies early goes to those made early.
  std::ranges::stable_sort(hosts, {}, &Host::begin);
  return hosts;
}

// Whether there is room for the item, with its place then.
bool MoveTo(Host& host, Item& item) {
  if (host.begin <= item.end) return false;
  const int64_t offset = host.items.LowestFor(item);
  if (offset + item.bytes > host.bytes) return false;
  item.offset = offset;
  item.host = host.result;
  return true;
}

// Places large items, the largest first, in results' memory. The others are left in `items`.
std::vector<Item> MoveToResults(std::vector<Item>& items, std::vector<Host>& hosts) {
  std::vector<Item> moved, left;
  std::ranges::stable_sort(items, std::greater(), &Item::bytes);
  for (Item& item : items) {
    Host* host = nullptr;
    for (size_t h = 0; h < hosts.size() && !host && item.bytes >= kLeastInResults; ++h) {
      if (MoveTo(hosts[h], item)) host = &hosts[h];
    }
    if (host) {
      host->items.Add(item);
      moved.push_back(item);
    } else {
      left.push_back(item);
    }
  }
  items = std::move(left);
  return moved;
}

// Where all of them are.
struct Arrangement {
  int64_t arena = 0;
  std::vector<Item> items;  // in the arena
  std::vector<Item> moved;  // in results' memory
};

// With `spread` arrays of whole pages begin at different places of a page.
Arrangement Arranged(std::span<const Buffer> buffers, int64_t alignment, bool spread) {
  Arrangement all;
  for (size_t b = 0; b < buffers.size(); ++b) {
    const Buffer& buffer = buffers[b];
    if (buffer.kind != Buffer::Kind::kArena || buffer.bytes == 0) continue;
    const int64_t bytes =
        spread ? SpreadDistance(buffer.bytes, alignment) : RoundUp(buffer.bytes, alignment);
    all.items.push_back({b, buffer.begin, buffer.end, bytes});
  }
  all.arena = Arrange(all.items);
  std::vector<Host> hosts = HostsOf(buffers);
  if (hosts.empty() || all.arena < kLeastInResults) return all;
  std::vector<Item> rest = all.items;
  std::vector<Item> moved = MoveToResults(rest, hosts);
  if (const int64_t bytes = Arrange(rest); bytes < all.arena) {
    all = {bytes, std::move(rest), std::move(moved)};
  }
  return all;
}

}  // namespace

int64_t AssignOffsets(std::span<Buffer> buffers, int64_t alignment) {
  Arrangement all = Arranged(buffers, alignment, /*spread=*/false);
  if (all.arena >= kLeastSpread) {
    Arrangement spread = Arranged(buffers, alignment, /*spread=*/true);
    if (spread.arena <= all.arena + all.arena / kSpreadPart) all = std::move(spread);
  }
  for (const Item& i : all.items) buffers[i.buffer].offset = i.offset;
  for (const Item& i : all.moved) {
    Buffer& buffer = buffers[i.buffer];
    buffer.kind = Buffer::Kind::kResult;
    buffer.number = buffers[i.host].number;
    buffer.offset = i.offset;
  }
  return all.arena;
}

}  // namespace kiln::passes

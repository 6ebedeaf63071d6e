// The edges of a graph by their ends: a hash table in one array, for graphs of hundreds of
// thousands of edges that come and go. A look-up reads one cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kiln::session {

class EdgeTable {
 public:
  static constexpr int32_t kNone = -1;

  // The number of the edge, or kNone.
  int32_t Find(int32_t from, int32_t to) const;
  // Whether there was none; if there was one, it stays.
  bool Insert(int32_t from, int32_t to, int32_t edge);
  // The number of the removed edge, or kNone.
  int32_t Erase(int32_t from, int32_t to);

 private:
  struct Place {
    int32_t from = kNone, to = kNone;
    int32_t edge = kNone;  // none: the place is free
  };
  // Where a search for the edge begins. The high bits of a product depend on all bits of the ends.
  size_t Start(int32_t from, int32_t to) const {
    const uint64_t key =
        static_cast<uint64_t>(static_cast<uint32_t>(from)) << 32 | static_cast<uint32_t>(to);
    return static_cast<size_t>(((key ^ key >> 29) * 0x9E3779B97F4A7C15) >> shift_);
  }
  size_t Next(size_t at) const { return (at + 1) & (places_.size() - 1); }
  // Makes room for so many edges.
  void Reserve(size_t edges);
  // The edge's place, or the free one where a search for it ends.
  size_t PlaceOf(int32_t from, int32_t to) const;

  std::vector<Place> places_;  // a power of two, more than half of them free
  int shift_ = 0;
  size_t count_ = 0;
};

}  // namespace kiln::session

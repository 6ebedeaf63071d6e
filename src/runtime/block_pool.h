// Blocks of memory that share huge pages.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "base/spread.h"

namespace kiln::runtime {

// Arrays of some 100 kB to 2 MB, as the weights and caches of a model are, fill no huge page each,
// and in small pages a run that reads all of them spends a good part of its time on the translation
// of addresses. Here they are pieces of slabs of huge pages. Any thread.
class BlockPool {
 public:
  static constexpr size_t kHugePage = 2 << 20;
  // The sizes of blocks, from the first to below the second.
  static constexpr size_t kLeast = 128 << 10, kMost = kHugePage;

  BlockPool() = default;
  // Every block has been given back.
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // Memory aligned to kAlignment; null if there is none.
  void* Allocate(size_t bytes);
  // `bytes` as in Allocate. A slab without blocks is given back to the system, but for one.
  void Deallocate(void* memory, size_t bytes) noexcept;

 private:
  static constexpr size_t kAlignment = 64;
  // Of huge pages, and behind them room for what spreads the blocks.
  static constexpr size_t kPagesBytes = 8 * kHugePage,
                          kSlabBytes = kPagesBytes + kPagesBytes / kLeast * kSpreadBytes;

  // A free piece of a slab, at its front.
  struct Piece {
    Piece* next;  // by address; no two of them adjoin
    size_t bytes;
  };
  struct Slab {
    std::byte* memory;
    Piece* free;
  };

  static size_t Rounded(size_t bytes) {
    return static_cast<size_t>(SpreadDistance(static_cast<int64_t>(bytes), kAlignment));
  }
  static bool IsEmpty(const Slab& slab) { return slab.free && slab.free->bytes == kSlabBytes; }
  static std::byte* EndOf(Piece* piece) {
    return reinterpret_cast<std::byte*>(piece) + piece->bytes;
  }
  // The first piece that is large enough, or null.
  static void* Take(Slab& slab, size_t bytes);
  static void Give(Slab& slab, std::byte* memory, size_t bytes);

  std::mutex mutex_;
  std::vector<Slab> slabs_;
};

}  // namespace kiln::runtime

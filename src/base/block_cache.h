// Small blocks of memory that a thread has freed, for its next allocations.
#pragma once

#include <malloc.h>

#include <array>
#include <cstddef>
#include <new>

namespace kiln {

// A compilation allocates and frees small objects by the hundred thousand. The C library keeps a
// few of each size for a thread; all others take it a fifth of the compilation's time. Blocks are
// those of malloc, and may be freed by anybody. For one thread; operator new and delete of the
// library (backend/memory.cc) take and keep blocks while the thread is in a BlockCacheScope.
class BlockCache {
 public:
  static constexpr size_t kMostBytes = 512;                  // of a block
  static constexpr size_t kMostKeptBytes = size_t{4} << 20;  // of all blocks together

  BlockCache() = default;
  ~BlockCache() { Clear(); }
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // That of the thread's scope, or null.
  static BlockCache* Current() { return current_; }

  // A block of at least so many bytes, or null if none is kept.
  void* Take(size_t bytes) {
    if (bytes > kMostBytes) return nullptr;
    const size_t list = ListOf(bytes);
    Block* block = first_[list];
    if (!block) return nullptr;
    first_[list] = block->next;
    kept_bytes_ -= BytesOf(list);
    return block;
  }

  // Takes over a block of malloc's. False: it is too large or too small, or enough are kept.
  bool Keep(void* memory) {
    // The size that was asked for does not tell what else fits.
    const size_t bytes = malloc_usable_size(memory);
    const size_t list = (bytes - 8) / kStep;
    if (bytes < kLeast || list >= first_.size() || kept_bytes_ >= kMostKeptBytes) return false;
    first_[list] = new (memory) Block{first_[list]};
    kept_bytes_ += BytesOf(list);
    return true;
  }

  // Frees all blocks.
  void Clear();

 private:
  friend class BlockCacheScope;
  struct Block {
    Block* next;
  };
  // The GNU C library's blocks have 24, 40, 56, ... bytes, a list for each: 1, 2, 3, ... Other
  // libraries' blocks are in the list of the next smaller one.
  static constexpr size_t kLeast = 24, kStep = 16;
  static constexpr size_t BytesOf(size_t list) { return list * kStep + 8; }
  // That has blocks of at least so many bytes.
  static constexpr size_t ListOf(size_t bytes) {
    return bytes <= kLeast ? 1 : (bytes + kStep - 9) / kStep;
  }

  static inline constinit thread_local BlockCache* current_ = nullptr;
  std::array<Block*, kMostBytes / kStep + 1> first_ = {};
  size_t kept_bytes_ = 0;
};

// The thread has a cache as long as it is in such a scope; in an inner one that of the outer one.
class BlockCacheScope {
 public:
  BlockCacheScope() {
    if (!BlockCache::current_) BlockCache::current_ = &cache_;
  }
  ~BlockCacheScope() {
    if (BlockCache::current_ == &cache_) BlockCache::current_ = nullptr;
  }
  BlockCacheScope(const BlockCacheScope&) = delete;
  BlockCacheScope& operator=(const BlockCacheScope&) = delete;

 private:
  BlockCache cache_;
};

}  // namespace kiln

#include "base/block_cache.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace kiln {
namespace {

TEST(BlockCache, TakesBlocksThatAreLargeEnough) {
  BlockCache cache;
  for (size_t kept = 1; kept <= 600; ++kept) {
    void* block = std::malloc(kept);
    const size_t usable = malloc_usable_size(block);
    if (!cache.Keep(block)) {
      EXPECT_GT(usable, BlockCache::kMostBytes);
      std::free(block);
      continue;
    }
    // A larger one is not served by it; one of its size is.
    EXPECT_EQ(cache.Take(usable + 1), nullptr) << kept;
    EXPECT_EQ(cache.Take(std::min(usable, BlockCache::kMostBytes)), block) << kept;
    std::memset(block, 1, usable);
    std::free(block);
  }
}

TEST(BlockCache, LastFreedIsTakenFirst) {
  BlockCache cache;
  void *a = std::malloc(40), *b = std::malloc(40);
  ASSERT_TRUE(cache.Keep(a));
  ASSERT_TRUE(cache.Keep(b));
  EXPECT_EQ(cache.Take(malloc_usable_size(b)), b);
  EXPECT_EQ(cache.Take(malloc_usable_size(a)), a);
  EXPECT_EQ(cache.Take(40), nullptr);
  std::free(a);
  std::free(b);
}

TEST(BlockCache, KeepsSoManyBytes) {
  BlockCache cache;
  size_t kept = 0;
  for (;;) {
    void* block = std::malloc(500);
    const size_t bytes = malloc_usable_size(block);
    if (!cache.Keep(block)) {
      std::free(block);
      EXPECT_GE(kept, BlockCache::kMostKeptBytes);
      break;
    }
    kept += bytes;
    ASSERT_LT(kept, BlockCache::kMostKeptBytes + bytes);
  }
  cache.Clear();
  EXPECT_EQ(cache.Take(500), nullptr);
  void* block = std::malloc(500);
  EXPECT_TRUE(cache.Keep(block));
}

TEST(BlockCache, BelongsToAThreadsScope) {
  EXPECT_EQ(BlockCache::Current(), nullptr);
  {
    const BlockCacheScope scope;
    BlockCache* const cache = BlockCache::Current();
    EXPECT_NE(cache, nullptr);
    {
      const BlockCacheScope inner;
      EXPECT_EQ(BlockCache::Current(), cache);
    }
    EXPECT_EQ(BlockCache::Current(), cache);
    std::thread([] { EXPECT_EQ(BlockCache::Current(), nullptr); }).join();
  }
  EXPECT_EQ(BlockCache::Current(), nullptr);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// More than the C library keeps of a size for a thread. It may give a block more bytes than others,
// which is in another list then.
TEST(BlockCache, DeleteKeepsAndNewTakes) {
  const BlockCacheScope scope;
  BlockCache& cache = *BlockCache::Current();
  constexpr size_t kBlocks = 1000, kMost = kBlocks / 10, kBytes = 72;
  std::vector<void*> blocks(kBlocks);
  for (void*& block : blocks) block = ::operator new(kBytes);
  for (void* block : blocks) ::operator delete(block);
  std::vector<void*> taken;
  while (void* block = cache.Take(kBytes)) taken.push_back(block);
  EXPECT_GE(taken.size(), kBlocks - kMost);
  for (void* block : taken) ::operator delete(block);
  for (size_t k = 0; k < kBlocks - kMost; ++k) blocks[k] = ::operator new(kBytes);
  size_t left = 0;
  for (taken.clear(); void* block = cache.Take(kBytes); ++left) taken.push_back(block);
  EXPECT_LE(left, kMost);
  for (void* block : taken) ::operator delete(block);
  for (size_t k = 0; k < kBlocks - kMost; ++k) ::operator delete(blocks[k]);
}
#endif

}  // namespace
}  // namespace kiln

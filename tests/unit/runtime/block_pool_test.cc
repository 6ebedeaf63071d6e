#include "runtime/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace kiln::runtime {
namespace {

struct Block {
  unsigned char* memory;
  size_t bytes;
  unsigned char mark;

  bool IsIntact() const {
    return std::all_of(memory, memory + bytes, [&](unsigned char c) { return c == mark; });
  }
};

Block Make(BlockPool& pool, size_t bytes, unsigned char mark) {
  auto* memory = static_cast<unsigned char*>(pool.Allocate(bytes));
  EXPECT_NE(memory, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
  std::memset(memory, mark, bytes);
  return {memory, bytes, mark};
}

// Blocks of random sizes, given back in random order, keep what is written into them.
void UseAtRandom(BlockPool& pool, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Block> blocks;
  for (int step = 0; step < 400; ++step) {
    if (blocks.size() < 30 && random() % 5 < 3) {
      const size_t bytes = BlockPool::kLeast + random() % (BlockPool::kMost - BlockPool::kLeast);
      blocks.push_back(Make(pool, bytes, static_cast<unsigned char>(random())));
    } else if (!blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      EXPECT_TRUE(blocks.back().IsIntact());
      pool.Deallocate(blocks.back().memory, blocks.back().bytes);
      blocks.pop_back();
    }
  }
  for (const Block& block : blocks) {
    EXPECT_TRUE(block.IsIntact());
    pool.Deallocate(block.memory, block.bytes);
  }
}

TEST(BlockPool, BlocksAreTheirOwners) {
  BlockPool pool;
  for (unsigned seed = 0; seed < 5; ++seed) UseAtRandom(pool, seed);
}

TEST(BlockPool, AnyThread) {
  BlockPool pool;
  std::vector<std::thread> threads;
  for (unsigned seed = 10; seed < 13; ++seed) {
    threads.emplace_back([&pool, seed] { UseAtRandom(pool, seed); });
  }
  for (std::thread& thread : threads) thread.join();
}

// Pieces that adjoin are one again, whichever goes first: what filled a slab fills it with blocks
// of another size.
TEST(BlockPool, PiecesAreJoined) {
  BlockPool pool;
  constexpr size_t kSmall = 256 << 10, kCount = 64;
  constexpr int64_t kDistance = SpreadDistance(kSmall, 64),
                    kLargeDistance = SpreadDistance(4 * kSmall, 64);
  for (unsigned seed = 0; seed < 10; ++seed) {
    std::vector<Block> blocks;
    for (size_t i = 0; i < kCount; ++i) blocks.push_back(Make(pool, kSmall, 1));
    const auto by_address = [](const Block& a, const Block& b) { return a.memory < b.memory; };
    auto* first = std::ranges::min_element(blocks, by_address)->memory;
    ASSERT_EQ(std::ranges::max_element(blocks, by_address)->memory,
              first + (kCount - 1) * kDistance);
    std::ranges::shuffle(blocks, std::mt19937(seed));
    for (const Block& block : blocks) pool.Deallocate(block.memory, block.bytes);
    blocks.clear();
    for (size_t i = 0; i < kCount / 4; ++i) {
      blocks.push_back(Make(pool, 4 * kSmall, 2));
      EXPECT_EQ(blocks.back().memory, first + i * kLargeDistance);
    }
    for (const Block& block : blocks) pool.Deallocate(block.memory, block.bytes);
  }
}

}  // namespace
}  // namespace kiln::runtime

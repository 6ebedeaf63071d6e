#include "base/node_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <list>
#include <new>
#include <set>
#include <string>

namespace kiln {
namespace {

// Gives memory so many times more, and knows how much is out.
class Upstream final : public std::pmr::memory_resource {
 public:
  int left = 1 << 30, blocks = 0;

 private:
  void* do_allocate(size_t bytes, size_t alignment) override {
    if (left == 0) throw std::bad_alloc();
    --left, ++blocks;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override {
    --blocks;
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

TEST(NodePool, NodesAreApartAndAligned) {
  struct alignas(16) Node {
    char bytes[48];
  };
  Upstream upstream;
  {
    NodePool pool(&upstream);
    std::set<uintptr_t> places;
    for (int k = 0; k < 10000; ++k) {
      places.insert(reinterpret_cast<uintptr_t>(pool.allocate(sizeof(Node), alignof(Node))));
    }
    EXPECT_EQ(places.size(), 10000);
    uintptr_t end = 0;
    for (uintptr_t place : places) {
      EXPECT_EQ(place % alignof(Node), 0);
      EXPECT_GE(place, end);
      end = place + sizeof(Node);
    }
    EXPECT_LT(upstream.blocks, 30);
  }
  EXPECT_EQ(upstream.blocks, 0);
}

TEST(NodePool, FreedNodesAreGivenOutAgain) {
  Upstream upstream;
  NodePool pool(&upstream);
  std::pmr::list<std::string> first(1000, "a text that is too long for a string's own bytes",
                                    &pool),
      second(&pool);
  const int blocks = upstream.blocks;
  for (int k = 0; k < 100; ++k) {
    first.resize(10);
    second.splice(second.begin(), first);
    second.resize(1000);
    first.swap(second);
  }
  EXPECT_EQ(upstream.blocks, blocks);
  EXPECT_EQ(first.size(), 1000);
}

TEST(NodePool, OtherSizesAreUpstreams) {
  Upstream upstream;
  {
    NodePool pool(&upstream);
    void* node = pool.allocate(24, 8);
    EXPECT_EQ(upstream.blocks, 1);
    void *small = pool.allocate(3, 1), *large = pool.allocate(100, 64);
    void* wide = pool.allocate(24, 64);
    EXPECT_EQ(upstream.blocks, 4);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % 64, 0);
    pool.deallocate(small, 3, 1);
    pool.deallocate(large, 100, 64);
    pool.deallocate(wide, 24, 64);
    EXPECT_EQ(upstream.blocks, 1);
    pool.deallocate(node, 24, 8);
    EXPECT_EQ(pool.allocate(24, 8), node);
  }
  EXPECT_EQ(upstream.blocks, 0);
}

TEST(NodePool, GoesOnWhereMemoryIsThereAgain) {
  for (int left = 0; left < 6; ++left) {
    Upstream upstream;
    {
      NodePool pool(&upstream);
      std::pmr::list<int64_t> list(&pool);
      upstream.left = left;
      int64_t made = 0;
      const auto fill = [&] {
        while (made < 5000) list.push_back(made), ++made;
      };
      EXPECT_THROW(fill(), std::bad_alloc);
      EXPECT_THROW(fill(), std::bad_alloc);
      upstream.left = 1000;
      EXPECT_NO_THROW(fill());
      int64_t k = 0;
      for (int64_t value : list) EXPECT_EQ(value, k++);
      EXPECT_EQ(k, 5000);
    }
    EXPECT_EQ(upstream.blocks, 0);
  }
}

}  // namespace
}  // namespace kiln

// Memory of the nodes of a container, which come and go.
#pragma once

#include <cstddef>
#include <memory_resource>

namespace kiln {

// All nodes have the size of the first one; memory of other sizes is upstream's own. Freed nodes
// are given out again. Blocks of nodes go back to upstream with the pool, which outlives its nodes.
// An exception of upstream's, such as std::bad_alloc, leaves the pool as it was. For one thread at
// a time.
class NodePool final : public std::pmr::memory_resource {
 public:
  explicit NodePool(std::pmr::memory_resource* upstream = std::pmr::new_delete_resource())
      : upstream_(upstream) {}
  ~NodePool() override;
  NodePool(const NodePool&) = delete;
  NodePool& operator=(const NodePool&) = delete;

 private:
  struct FreeNode {
    FreeNode* next;
  };
  // Stands before the nodes of a block.
  struct alignas(std::max_align_t) Block {
    Block* next;
    size_t bytes;
  };

  bool IsNode(size_t bytes, size_t alignment) const;
  void AddBlock();
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::pmr::memory_resource* const upstream_;
  size_t node_bytes_ = 0;  // 0 before the first one
  FreeNode* free_ = nullptr;
  // The part of the last block that was never given out.
  std::byte *rest_ = nullptr, *end_ = nullptr;
  Block* blocks_ = nullptr;
};

}  // namespace kiln

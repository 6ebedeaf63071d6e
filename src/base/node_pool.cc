#include "base/node_pool.h"

#include <algorithm>
#include <new>
#include <utility>

namespace kiln {
namespace {

constexpr size_t kFewestNodes = 8, kMostBytes = size_t{64} << 10;

}  // namespace

NodePool::~NodePool() {
  while (Block* block = blocks_) {
    blocks_ = block->next;
    upstream_->deallocate(block, block->bytes, alignof(Block));
  }
}

// The size of an object is a multiple of its alignment.
bool NodePool::IsNode(size_t bytes, size_t alignment) const {
  return bytes == node_bytes_ && alignment <= alignof(Block);
}

// Twice as large as the one before.
void NodePool::AddBlock() {
  size_t bytes = sizeof(Block) + kFewestNodes * node_bytes_;
  if (blocks_) bytes = std::max(bytes, std::min(2 * blocks_->bytes, kMostBytes));
  auto* memory = static_cast<std::byte*>(upstream_->allocate(bytes, alignof(Block)));
  blocks_ = new (memory) Block{blocks_, bytes};
  rest_ = memory + sizeof(Block);
  end_ = memory + bytes;
}

void* NodePool::do_allocate(size_t bytes, size_t alignment) {
  if (node_bytes_ == 0 && bytes >= sizeof(FreeNode) && bytes % alignof(FreeNode) == 0) {
    node_bytes_ = bytes;
  }
  if (!IsNode(bytes, alignment)) return upstream_->allocate(bytes, alignment);
  if (free_) return std::exchange(free_, free_->next);
  if (static_cast<size_t>(end_ - rest_) < bytes) AddBlock();
  return std::exchange(rest_, rest_ + bytes);
}

void NodePool::do_deallocate(void* memory, size_t bytes, size_t alignment) {
  if (!IsNode(bytes, alignment)) return upstream_->deallocate(memory, bytes, alignment);
  free_ = new (memory) FreeNode{free_};
}

}  // namespace kiln

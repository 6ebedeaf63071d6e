#include "runtime/block_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace kiln::runtime {

BlockPool::~BlockPool() {
  for (const Slab& slab : slabs_) std::free(slab.memory);
}

void* BlockPool::Take(Slab& slab, size_t bytes) {
  for (Piece** link = &slab.free; *link; link = &(*link)->next) {
    Piece* piece = *link;
    if (piece->bytes < bytes) continue;
    *link = piece->bytes == bytes ? piece->next
                                  : new (reinterpret_cast<std::byte*>(piece) + bytes)
                                        Piece{piece->next, piece->bytes - bytes};
    return piece;
  }
  return nullptr;
}

void BlockPool::Give(Slab& slab, std::byte* memory, size_t bytes) {
  Piece** link = &slab.free;
  Piece* before = nullptr;
  while (*link && reinterpret_cast<std::byte*>(*link) < memory) {
    before = *link;
    link = &before->next;
  }
  Piece* piece = *link = new (memory) Piece{*link, bytes};
  if (piece->next && EndOf(piece) == reinterpret_cast<std::byte*>(piece->next)) {
    piece->bytes += piece->next->bytes;
    piece->next = piece->next->next;
  }
  if (before && EndOf(before) == memory) {
    before->bytes += piece->bytes;
    before->next = piece->next;
  }
}

void* BlockPool::Allocate(size_t bytes) {
  bytes = Rounded(bytes);
  std::lock_guard lock(mutex_);
  for (Slab& slab : slabs_) {
    if (void* memory = Take(slab, bytes)) return memory;
  }
  slabs_.reserve(slabs_.size() + 1);
  void* memory = nullptr;
  if (posix_memalign(&memory, kHugePage, kSlabBytes) != 0) return nullptr;
  madvise(memory, kPagesBytes, MADV_HUGEPAGE);
  auto* front = static_cast<std::byte*>(memory);
  slabs_.push_back({front, new (front) Piece{nullptr, kSlabBytes}});
  return Take(slabs_.back(), bytes);
}

void BlockPool::Deallocate(void* memory, size_t bytes) noexcept {
  auto* block = static_cast<std::byte*>(memory);
  std::lock_guard lock(mutex_);
  const auto slab = std::ranges::find_if(
      slabs_, [&](const Slab& s) { return block >= s.memory && block < s.memory + kSlabBytes; });
  Give(*slab, block, Rounded(bytes));
  if (!IsEmpty(*slab) || std::ranges::count_if(slabs_, IsEmpty) == 1) return;
  std::free(slab->memory);
  slabs_.erase(slab);
}

}  // namespace kiln::runtime

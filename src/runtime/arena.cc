#include "runtime/arena.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "base/stack.h"

namespace kiln::runtime {
namespace {

// From here on memory is aligned to huge pages and asks for them: a fault then costs a 512th.
constexpr size_t kHugePage = 2 << 20;
constexpr int64_t kHugeFrom = 4 << 20;

size_t AlignmentFor(int64_t bytes) {
  return bytes >= kHugeFrom ? kHugePage : Allocator::kAlignment;
}

}  // namespace

Result<std::byte*> Allocator::Allocate(int64_t bytes) {
  size_t size = static_cast<size_t>(bytes > 0 ? bytes : 1);
  void* memory = nullptr;
  if (hooks_.allocate) {
    OnCallersStack([&] { memory = hooks_.allocate(hooks_.user_data, size, kAlignment); });
  } else {
    size_t alignment = AlignmentFor(bytes);
    if (posix_memalign(&memory, alignment, size) != 0) memory = nullptr;
    if (memory && alignment == kHugePage) madvise(memory, size, MADV_HUGEPAGE);
  }
  if (!memory) {
    return ResourceExhausted("out of memory: ", bytes, " bytes asked for, ", live_bytes(),
                             " bytes in use");
  }
  int64_t live = live_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (live > peak && !peak_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
  return static_cast<std::byte*>(memory);
}

void Allocator::Deallocate(std::byte* memory, int64_t bytes) {
  if (!memory) return;
  live_.fetch_sub(bytes, std::memory_order_relaxed);
  if (hooks_.allocate) {
    if (hooks_.deallocate) {
      OnCallersStack([&] {
        hooks_.deallocate(hooks_.user_data, memory, static_cast<size_t>(bytes > 0 ? bytes : 1),
                          kAlignment);
      });
    }
  } else {
    std::free(memory);
  }
}

ArenaCache::~ArenaCache() {
  source_.Deallocate(hot_.load(), bytes_);
  for (std::byte* arena : free_) source_.Deallocate(arena, bytes_);
}

Result<std::byte*> ArenaCache::Acquire() {
  if (std::byte* arena = hot_.exchange(nullptr, std::memory_order_acquire)) return arena;
  {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::byte* arena = free_.back();
      free_.pop_back();
      return arena;
    }
    // Capacity for all arenas, so that Release cannot fail.
    free_.reserve(static_cast<size_t>(++arenas_));
  }
  Result<std::byte*> arena = source_.Allocate(bytes_);
  if (!arena.ok()) {
    std::lock_guard lock(mutex_);
    --arenas_;
  }
  return arena;
}

void ArenaCache::Release(std::byte* arena) {
  std::byte* none = nullptr;
  if (hot_.compare_exchange_strong(none, arena, std::memory_order_release)) return;
  std::lock_guard lock(mutex_);
  free_.push_back(arena);
}

}  // namespace kiln::runtime

#include "runtime/arena.h"

#include <sys/mman.h>

#include <cstdlib>

#include "base/spread.h"
#include "base/stack.h"

namespace kiln::runtime {
namespace {

// Memory of at least one huge page is aligned to them, but for the spread, and asks for them:
// faults and translations of addresses then cost a 512th.
constexpr auto kHugePage = static_cast<int64_t>(BlockPool::kHugePage);
constexpr uint32_t kSpreads = kSpreadPageBytes / kSpreadBytes;

// Sanitizers look after each block of malloc's.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kHasPool = false;
#else
constexpr bool kHasPool = true;
#endif

bool IsPooled(int64_t bytes) {
  return kHasPool && bytes >= static_cast<int64_t>(BlockPool::kLeast) &&
         bytes < static_cast<int64_t>(BlockPool::kMost);
}

}  // namespace

Allocator::Allocator(AllocatorHooks hooks) : hooks_(hooks) {}
Allocator::~Allocator() = default;

Result<std::byte*> Allocator::Allocate(int64_t bytes) {
  size_t size = static_cast<size_t>(bytes > 0 ? bytes : 1);
  void* memory = nullptr;
  if (hooks_.allocate) {
    OnCallersStack([&] { memory = hooks_.allocate(hooks_.user_data, size, kAlignment); });
  } else if (IsPooled(bytes)) {
    memory = pool_.Allocate(size);
  } else {
    const bool huge = bytes >= kHugePage;
    const size_t spread =
        huge ? spread_.fetch_add(1, std::memory_order_relaxed) % kSpreads * kSpreadBytes : 0;
    if (posix_memalign(&memory, huge ? BlockPool::kHugePage : kAlignment, size + spread) != 0) {
      memory = nullptr;
    }
    if (memory && huge) {
      // What the spread adds behind is no huge page.
      madvise(memory, size / BlockPool::kHugePage * BlockPool::kHugePage, MADV_HUGEPAGE);
      memory = static_cast<std::byte*>(memory) + spread;
    }
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
  } else if (IsPooled(bytes)) {
    pool_.Deallocate(memory, static_cast<size_t>(bytes));
  } else {
    const auto address = reinterpret_cast<uintptr_t>(memory);
    std::free(bytes >= kHugePage ? memory - address % BlockPool::kHugePage : memory);
  }
}

ArenaCache::ArenaCache(MemorySource& source, int64_t bytes) : source_(source), bytes_(bytes) {}

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

// Memory for runs: aligned allocations through the user's hooks, and arenas cached for the next
// run, because fresh pages cost more than most kernels.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "runtime/block_pool.h"

namespace kiln::runtime {

// The source of memory. The hooks may be called from any thread that runs an executable.
struct AllocatorHooks {
  // Returns memory of `bytes` at a multiple of `alignment` (a power of two), or null.
  void* (*allocate)(void* user_data, size_t bytes, size_t alignment) = nullptr;
  void (*deallocate)(void* user_data, void* memory, size_t bytes, size_t alignment) = nullptr;
  void* user_data = nullptr;
};

// An allocator of memory: the host's, or a device.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual Result<std::byte*> Allocate(int64_t bytes) = 0;
  virtual void Deallocate(std::byte* memory, int64_t bytes) = 0;
};

class Allocator final : public MemorySource {
 public:
  static constexpr size_t kAlignment = 64;

  explicit Allocator(AllocatorHooks hooks = {});
  ~Allocator() override;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // At least one byte, so that empty arrays have an address too. RESOURCE_EXHAUSTED states the
  // requested bytes and the bytes in use.
  Result<std::byte*> Allocate(int64_t bytes) override;
  void Deallocate(std::byte* memory, int64_t bytes) override;

  int64_t live_bytes() const { return live_.load(std::memory_order_relaxed); }
  int64_t peak_bytes() const { return peak_.load(std::memory_order_relaxed); }

 private:
  AllocatorHooks hooks_;
  BlockPool pool_;
  std::atomic<uint32_t> spread_{0};  // of the next array in huge pages of its own
  std::atomic<int64_t> live_{0}, peak_{0};
};

// The arenas of one executable: one per concurrent run, cached for later runs.
class ArenaCache {
 public:
  ArenaCache(MemorySource& source, int64_t bytes);
  ~ArenaCache();
  ArenaCache(const ArenaCache&) = delete;
  ArenaCache& operator=(const ArenaCache&) = delete;

  Result<std::byte*> Acquire();
  void Release(std::byte* arena);

 private:
  MemorySource& source_;
  const int64_t bytes_;
  // The last arena returned, taken and put back without a lock.
  std::atomic<std::byte*> hot_{nullptr};
  std::mutex mutex_;
  std::vector<std::byte*> free_;
  int64_t arenas_ = 0;
};

}  // namespace kiln::runtime

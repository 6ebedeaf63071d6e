// A GPU's memory: from a private pool of the driver, or, on devices without pools, from blocks
// cached by size and stream.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "device/cuda/context.h"
#include "device/gpu/machine.h"

namespace kiln::device::cuda {

class CudaStream;

class Memory {
 public:
  // A limit of 0 is none.
  Memory(std::shared_ptr<Context> context, bool has_pools, int64_t limit_bytes)
      : context_(std::move(context)), has_pools_(has_pools), limit_bytes_(limit_bytes) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  // As GpuMachine's.
  Result<std::byte*> Allocate(int64_t bytes, CudaStream& stream);
  void Free(std::byte* memory, int64_t bytes, CudaStream& stream) noexcept;
  // Cached blocks count as free.
  Result<GpuMemory> Info();

  // An id of a stream; unlike the driver's handles, never reused.
  uint64_t NameStream() { return ++last_stream_; }
  // All work of that stream is done: its freed blocks are available to all.
  void StreamEnds(uint64_t stream) noexcept;

 private:
  struct Block {
    DevicePointer address;
    uint64_t stream;  // whose turn it is; 0 is anyone's
  };

  // Counts them as used if the limit allows it.
  bool Reserve(int64_t bytes);
  Status Exhausted(int64_t bytes);
  Result<DevicePointer> AllocateOnce(int64_t bytes, CudaStream& stream);
  Result<PoolHandle> Pool();
  bool TakeKept(int64_t bytes, uint64_t stream, DevicePointer* address);
  bool Keep(int64_t bytes, Block block) noexcept;
  void FreeNow(DevicePointer address) noexcept;
  // Waits for the GPU and returns all cached blocks to the driver.
  void Trim() noexcept;

  const std::shared_ptr<Context> context_;
  const bool has_pools_;
  const int64_t limit_bytes_;
  std::atomic<int64_t> used_bytes_ = 0;
  std::atomic<uint64_t> last_stream_ = 0;

  std::mutex mutex_;
  PoolHandle pool_ = nullptr;
  std::unordered_map<int64_t, std::vector<Block>> kept_;  // by size
  int64_t kept_bytes_ = 0;
  std::vector<DevicePointer> refused_;  // that the driver would not take back; asked again later
};

}  // namespace kiln::device::cuda

// A GPU's memory: from a pool of the driver's that is ours alone, or, where the device has no
// pools, blocks that are kept for whoever asks for as much in the same stream.
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
  // What is kept for later counts as free.
  Result<GpuMemory> Info();

  // A name for a stream; unlike the driver's handles, never given again.
  uint64_t NameStream() { return ++last_stream_; }
  // All work of that stream is done: what it has left is anyone's.
  void StreamEnds(uint64_t stream) noexcept;

 private:
  struct Block {
    DevicePointer address;
    uint64_t stream;  // whose turn it is; 0 is anyone's
  };

  // Counts them as used where the limit allows that.
  bool Reserve(int64_t bytes);
  Status Exhausted(int64_t bytes);
  Result<DevicePointer> AllocateOnce(int64_t bytes, CudaStream& stream);
  Result<PoolHandle> Pool();
  bool TakeKept(int64_t bytes, uint64_t stream, DevicePointer* address);
  bool Keep(int64_t bytes, Block block) noexcept;
  void FreeNow(DevicePointer address) noexcept;
  // Waits for the GPU and gives the driver back all that is kept.
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

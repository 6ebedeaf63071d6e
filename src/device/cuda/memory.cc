#include "device/cuda/memory.h"

#include <algorithm>
#include <bit>
#include <new>

#include "device/cuda/stream.h"

namespace kiln::device::cuda {
namespace {

// Size classes of cached blocks: eight per power of two, so that at most an eighth is wasted.
int64_t BlockBytes(int64_t bytes) {
  constexpr int64_t kLeast = 512;
  if (bytes <= kLeast) return kLeast;
  const int bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(bytes - 1)));
  const int64_t step = std::max(kLeast, int64_t{1} << std::max(0, bits - 4));
  return (bytes + step - 1) / step * step;
}

std::byte* AsAddress(DevicePointer address) { return reinterpret_cast<std::byte*>(address); }
DevicePointer AsDevice(const std::byte* address) {
  return reinterpret_cast<DevicePointer>(address);
}

}  // namespace

Memory::~Memory() {
  Trim();
  if (pool_ != nullptr) context_->GiveBack(context_->api().MemPoolDestroy, pool_);
}

Result<std::byte*> Memory::Allocate(int64_t bytes, CudaStream& stream) {
  if (bytes < 0) return InvalidArgument("memory of ", bytes, " bytes");
  // Cached blocks may suffice without the driver.
  KILN_RETURN_IF_ERROR(context_->status());
  bytes = std::max<int64_t>(bytes, 1);
  if (!Reserve(bytes)) return Exhausted(bytes);
  auto address = AllocateOnce(bytes, stream);
  if (!address.ok() && address.status().code() == Code::kResourceExhausted) {
    Trim();
    address = AllocateOnce(bytes, stream);
    if (!address.ok() && address.status().code() == Code::kResourceExhausted) {
      used_bytes_.fetch_sub(bytes);
      return Exhausted(bytes);
    }
  }
  if (!address.ok()) {
    used_bytes_.fetch_sub(bytes);
    return address.status();
  }
  return AsAddress(*address);
}

bool Memory::Reserve(int64_t bytes) {
  // More than any machine has; sums of less do not overflow.
  constexpr int64_t kFar = int64_t{1} << 60;
  if (bytes > kFar) return false;
  int64_t used = used_bytes_.load();
  do {
    if (limit_bytes_ > 0 && used + bytes > limit_bytes_) return false;
  } while (!used_bytes_.compare_exchange_weak(used, used + bytes));
  return true;
}

Result<DevicePointer> Memory::AllocateOnce(int64_t bytes, CudaStream& stream) {
  const Functions& api = context_->api();
  DevicePointer address = 0;
  if (has_pools_) {
    KILN_ASSIGN_OR_RETURN(PoolHandle pool, Pool());
    KILN_RETURN_IF_ERROR(context_->Call(api.MemAllocFromPoolAsync, &address,
                                        static_cast<size_t>(bytes), pool, stream.handle()));
    return address;
  }
  const int64_t block_bytes = BlockBytes(bytes);
  if (TakeKept(block_bytes, stream.id(), &address)) return address;
  KILN_RETURN_IF_ERROR(context_->Call(api.MemAlloc, &address, static_cast<size_t>(block_bytes)));
  return address;
}

void Memory::Free(std::byte* memory, int64_t bytes, CudaStream& stream) noexcept {
  if (memory == nullptr) return;
  bytes = std::max<int64_t>(bytes, 1);
  used_bytes_.fetch_sub(bytes);
  const Functions& api = context_->api();
  const DevicePointer address = AsDevice(memory);
  if (has_pools_) {
    if (context_->GiveBack(api.MemFreeAsync, address, stream.handle())) return;
  } else if (Keep(BlockBytes(bytes), Block{address, stream.id()})) {
    return;
  }
  context_->GiveBack(api.StreamSynchronize, stream.handle());
  FreeNow(address);
}

void Memory::FreeNow(DevicePointer address) noexcept {
  if (context_->GiveBack(context_->api().MemFree, address)) return;
  std::lock_guard lock(mutex_);
  try {
    refused_.push_back(address);
  } catch (const std::bad_alloc&) {
    // Neither the driver nor the host has room for it.
  }
}

Result<PoolHandle> Memory::Pool() {
  std::lock_guard lock(mutex_);
  if (pool_ != nullptr) return pool_;
  const Functions& api = context_->api();
  PoolProperties properties;
  properties.location_id = context_->device();
  PoolHandle pool = nullptr;
  KILN_RETURN_IF_ERROR(
      context_->Call(api.MemPoolCreate, &pool, static_cast<const PoolProperties*>(&properties)));
  // By default the driver would return memory whenever a stream is awaited.
  uint64_t keep_all = ~uint64_t{0};
  if (Status status = context_->Call(api.MemPoolSetAttribute, pool,
                                     PoolAttribute::kReleaseThreshold, &keep_all);
      !status.ok()) {
    context_->GiveBack(api.MemPoolDestroy, pool);
    return status;
  }
  pool_ = pool;
  return pool;
}

bool Memory::TakeKept(int64_t bytes, uint64_t stream, DevicePointer* address) {
  std::lock_guard lock(mutex_);
  auto kept = kept_.find(bytes);
  if (kept == kept_.end()) return false;
  auto& blocks = kept->second;
  auto last = std::find_if(blocks.rbegin(), blocks.rend(), [stream](const Block& b) {
    return b.stream == stream || b.stream == 0;
  });
  if (last == blocks.rend()) return false;
  *address = last->address;
  blocks.erase(std::next(last).base());
  kept_bytes_ -= bytes;
  return true;
}

bool Memory::Keep(int64_t bytes, Block block) noexcept {
  std::lock_guard lock(mutex_);
  try {
    kept_[bytes].push_back(block);
  } catch (const std::bad_alloc&) {
    return false;
  }
  kept_bytes_ += bytes;
  return true;
}

void Memory::StreamEnds(uint64_t stream) noexcept {
  std::lock_guard lock(mutex_);
  for (auto& [bytes, blocks] : kept_) {
    for (Block& block : blocks) {
      if (block.stream == stream) block.stream = 0;
    }
  }
}

void Memory::Trim() noexcept {
  std::unordered_map<int64_t, std::vector<Block>> kept;
  std::vector<DevicePointer> refused;
  PoolHandle pool = nullptr;
  {
    std::lock_guard lock(mutex_);
    kept.swap(kept_);
    refused.swap(refused_);
    kept_bytes_ = 0;
    pool = pool_;
  }
  if (kept.empty() && refused.empty() && pool == nullptr) return;
  const Functions& api = context_->api();
  // Cached blocks may be in use by pending work.
  context_->GiveBack(api.CtxSynchronize);
  for (const auto& [bytes, blocks] : kept) {
    for (const Block& block : blocks) FreeNow(block.address);
  }
  for (DevicePointer address : refused) FreeNow(address);
  if (pool != nullptr) context_->GiveBack(api.MemPoolTrimTo, pool, size_t{0});
}

Status Memory::Exhausted(int64_t bytes) {
  std::string text = Cat("GPU ", context_->ordinal(), " is out of memory: ", bytes,
                         " bytes asked for, ", used_bytes_.load(), " in use");
  if (limit_bytes_ > 0) text += Cat(" of at most ", limit_bytes_);
  size_t free_bytes = 0, total_bytes = 0;
  if (context_->Call(context_->api().MemGetInfo, &free_bytes, &total_bytes).ok()) {
    text += Cat("; the device has ", free_bytes, " free of ", total_bytes);
  }
  return ResourceExhausted(text);
}

Result<GpuMemory> Memory::Info() {
  const Functions& api = context_->api();
  size_t free_bytes = 0, total_bytes = 0;
  KILN_RETURN_IF_ERROR(context_->Call(api.MemGetInfo, &free_bytes, &total_bytes));
  GpuMemory info;
  info.total_bytes = static_cast<int64_t>(total_bytes);
  info.free_bytes = static_cast<int64_t>(free_bytes);
  PoolHandle pool = nullptr;
  {
    std::lock_guard lock(mutex_);
    info.free_bytes += kept_bytes_;
    pool = pool_;
  }
  if (pool != nullptr) {
    uint64_t reserved = 0, used = 0;
    KILN_RETURN_IF_ERROR(
        context_->Call(api.MemPoolGetAttribute, pool, PoolAttribute::kReservedBytes, &reserved));
    KILN_RETURN_IF_ERROR(
        context_->Call(api.MemPoolGetAttribute, pool, PoolAttribute::kUsedBytes, &used));
    info.free_bytes += static_cast<int64_t>(reserved - std::min(reserved, used));
  }
  if (limit_bytes_ > 0) {
    info.total_bytes = std::min(info.total_bytes, limit_bytes_);
    info.free_bytes =
        std::min(info.free_bytes, std::max<int64_t>(0, limit_bytes_ - used_bytes_.load()));
  }
  return info;
}

}  // namespace kiln::device::cuda

// The stand-in's memory: the host's.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "state.h"

namespace kiln::device::cuda {
namespace {

constexpr size_t kAlignment = 512;

Error Allocate(Call& call, DevicePointer* address, size_t bytes, PoolObject* pool) {
  State& state = call.state;
  if (bytes == 0) return Error::kInvalidValue;
  const auto wanted = static_cast<int64_t>(bytes);
  int64_t more = wanted;
  if (pool != nullptr) more = std::max<int64_t>(0, pool->used + wanted - pool->reserved);
  if (state.UsedBytes() + more > state.settings.memory_bytes) return Error::kOutOfMemory;
  auto* made =
      state.Make<MemoryObject>("memory", pool != nullptr ? nullptr : call.context, wanted, pool);
  made->device = call.context->device;
  if (pool != nullptr) {
    pool->used += wanted;
    pool->reserved += more;
    state.reserved_bytes += more;
  } else {
    state.plain_bytes += wanted;
  }
  *address = reinterpret_cast<DevicePointer>(made->address);
  state.memory[*address] = made;
  return Error::kSuccess;
}

void Free(State& state, MemoryObject* memory) {
  state.memory.erase(reinterpret_cast<DevicePointer>(memory->address));
  state.Delete(memory);
}

}  // namespace

MemoryObject::MemoryObject(const char* kind, ContextObject* context, int64_t bytes,
                           PoolObject* pool)
    : Object(kind, context), bytes(bytes), pool(pool) {
  const size_t rounded = (static_cast<size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
  address = std::aligned_alloc(kAlignment, rounded);
  // Nobody may take it for zeros.
  std::memset(address, 0xCB, rounded);
}

MemoryObject::~MemoryObject() {
  State& state = TheState();
  if (pool != nullptr) {
    pool->used -= bytes;
  } else if (std::string(kind) == "memory") {
    state.plain_bytes -= bytes;
  }
  state.memory.erase(reinterpret_cast<DevicePointer>(address));
  std::free(address);
}

PoolObject::~PoolObject() { TheState().reserved_bytes -= reserved; }

MemoryObject* State::At(DevicePointer address) {
  auto found = memory.find(address);
  return found != memory.end() && !found->second->being_freed ? found->second : nullptr;
}

MemoryObject* State::Holder(DevicePointer address, int64_t bytes) {
  auto after = memory.upper_bound(address);
  if (after == memory.begin()) return nullptr;
  MemoryObject* holder = std::prev(after)->second;
  const auto end =
      reinterpret_cast<DevicePointer>(holder->address) + static_cast<DevicePointer>(holder->bytes);
  return address + static_cast<DevicePointer>(bytes) <= end ? holder : nullptr;
}

MemoryObject* State::PinnedHolder(const void* address) {
  for (Object* object : live) {
    if (std::string(object->kind) != "pinned") continue;
    auto* holder = static_cast<MemoryObject*>(object);
    const auto* first = static_cast<const char*>(holder->address);
    const auto* at = static_cast<const char*>(address);
    if (at >= first && at < first + holder->bytes) return holder;
  }
  return nullptr;
}

Error cuPointerGetAttributes(unsigned count, PointerAttribute* attributes, void** values,
                             DevicePointer address) {
  KILN_STANDIN_CALL(cuPointerGetAttributes, kContext);
  const MemoryObject* holder = call.state.Holder(address, 1);
  const bool is_host = holder == nullptr &&
                       call.state.PinnedHolder(reinterpret_cast<const void*>(address)) != nullptr;
  for (unsigned i = 0; i < count; ++i) {
    // All of them are four bytes large.
    int value = 0;
    switch (attributes[i]) {
      case PointerAttribute::kMemoryType:
        value = static_cast<int>(is_host ? MemoryType::kHost : MemoryType::kDevice);
        if (holder == nullptr && !is_host) value = 0;
        break;
      case PointerAttribute::kIsManaged:
        break;
      case PointerAttribute::kDeviceOrdinal:
        value = holder != nullptr ? holder->device : -2;
        break;
      default:
        return Error::kInvalidValue;
    }
    std::memcpy(values[i], &value, sizeof(value));
  }
  return Error::kSuccess;
}

Error cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  KILN_STANDIN_CALL(cuMemGetInfo_v2, kContext);
  *total_bytes = static_cast<size_t>(call.state.settings.memory_bytes);
  *free_bytes = *total_bytes - static_cast<size_t>(call.state.UsedBytes());
  return Error::kSuccess;
}

Error cuMemAlloc_v2(DevicePointer* address, size_t bytes) {
  KILN_STANDIN_CALL(cuMemAlloc_v2, kContext);
  return Allocate(call, address, bytes, nullptr);
}

Error cuMemFree_v2(DevicePointer address) {
  KILN_STANDIN_CALL(cuMemFree_v2, kContext);
  MemoryObject* memory = call.state.At(address);
  if (memory == nullptr) {
    ++call.state.misuses;
    return Error::kInvalidValue;
  }
  call.state.RunAll();
  Free(call.state, memory);
  return Error::kSuccess;
}

Error cuMemAllocHost_v2(void** address, size_t bytes) {
  KILN_STANDIN_CALL(cuMemAllocHost_v2, kContext);
  if (bytes == 0) return Error::kInvalidValue;
  auto* made =
      call.state.Make<MemoryObject>("pinned", call.context, static_cast<int64_t>(bytes), nullptr);
  *address = made->address;
  return Error::kSuccess;
}

Error cuMemFreeHost(void* address) {
  KILN_STANDIN_CALL(cuMemFreeHost, kContext);
  MemoryObject* memory = call.state.PinnedHolder(address);
  if (memory == nullptr || memory->address != address) {
    ++call.state.misuses;
    return Error::kInvalidValue;
  }
  call.state.RunAll();
  call.state.Delete(memory);
  return Error::kSuccess;
}

Error cuMemPoolCreate(PoolHandle* pool, const PoolProperties* properties) {
  KILN_STANDIN_CALL(cuMemPoolCreate, kDriver);
  const State& state = call.state;
  if (state.settings.pools == 0) return Error::kNotSupported;
  for (unsigned char byte : properties->reserved) {
    if (byte != 0) return Error::kInvalidValue;
  }
  if (properties->allocation_type != kAllocationTypePinned ||
      properties->location_type != kLocationTypeDevice || properties->location_id < 0 ||
      properties->location_id >= state.settings.devices || properties->handle_types != 0 ||
      properties->win32_security != nullptr) {
    return Error::kInvalidValue;
  }
  *pool = call.state.Make<PoolObject>();
  return Error::kSuccess;
}

Error cuMemPoolDestroy(PoolHandle pool) {
  KILN_STANDIN_CALL(cuMemPoolDestroy, kDriver);
  if (call.state.Check(pool) == nullptr) return Error::kInvalidValue;
  call.state.RunAll();
  if (pool->used != 0) {
    // Its memory is someone's still; the driver would wait for him, a test shall hear of it.
    ++call.state.leaked;
    return Error::kSuccess;
  }
  call.state.Delete(pool);
  return Error::kSuccess;
}

Error cuMemPoolSetAttribute(PoolHandle pool, PoolAttribute attribute, void* value) {
  KILN_STANDIN_CALL(cuMemPoolSetAttribute, kDriver);
  if (call.state.Check(pool) == nullptr) return Error::kInvalidValue;
  if (attribute != PoolAttribute::kReleaseThreshold) return Error::kInvalidValue;
  std::memcpy(&pool->release_threshold, value, sizeof(uint64_t));
  return Error::kSuccess;
}

Error cuMemPoolGetAttribute(PoolHandle pool, PoolAttribute attribute, void* value) {
  KILN_STANDIN_CALL(cuMemPoolGetAttribute, kDriver);
  if (call.state.Check(pool) == nullptr) return Error::kInvalidValue;
  uint64_t answer = 0;
  switch (attribute) {
    case PoolAttribute::kReleaseThreshold:
      answer = pool->release_threshold;
      break;
    case PoolAttribute::kReservedBytes:
      answer = static_cast<uint64_t>(pool->reserved);
      break;
    case PoolAttribute::kUsedBytes:
      answer = static_cast<uint64_t>(pool->used);
      break;
  }
  std::memcpy(value, &answer, sizeof(answer));
  return Error::kSuccess;
}

Error cuMemPoolTrimTo(PoolHandle pool, size_t bytes) {
  KILN_STANDIN_CALL(cuMemPoolTrimTo, kDriver);
  if (call.state.Check(pool) == nullptr) return Error::kInvalidValue;
  const int64_t kept = std::max(pool->used, std::min(pool->reserved, static_cast<int64_t>(bytes)));
  call.state.reserved_bytes -= pool->reserved - kept;
  pool->reserved = kept;
  return Error::kSuccess;
}

Error cuMemAllocFromPoolAsync(DevicePointer* address, size_t bytes, PoolHandle pool,
                              StreamHandle stream) {
  KILN_STANDIN_CALL(cuMemAllocFromPoolAsync, kContext);
  if (call.state.Check(pool) == nullptr) return Error::kInvalidValue;
  if (!CheckStream(call.state, stream)) return Error::kInvalidHandle;
  return Allocate(call, address, bytes, pool);
}

Error cuMemFreeAsync(DevicePointer address, StreamHandle stream) {
  KILN_STANDIN_CALL(cuMemFreeAsync, kContext);
  MemoryObject* memory = call.state.At(address);
  if (memory == nullptr || memory->pool == nullptr || !CheckStream(call.state, stream)) {
    ++call.state.misuses;
    return Error::kInvalidValue;
  }
  memory->being_freed = true;
  State& state = call.state;
  state.Enqueue(stream, [&state, memory] {
    Free(state, memory);
    return Error::kSuccess;
  });
  return Error::kSuccess;
}

Error CopyWork(State& state, DevicePointer to, DevicePointer from, int64_t bytes) {
  if (state.Holder(to, bytes) == nullptr || state.Holder(from, bytes) == nullptr) {
    return Error::kIllegalAddress;
  }
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from),
               static_cast<size_t>(bytes));
  ++state.copies;
  return Error::kSuccess;
}

Error cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes,
                           StreamHandle stream) {
  KILN_STANDIN_CALL(cuMemcpyDtoDAsync_v2, kContext);
  if (!CheckStream(call.state, stream)) return Error::kInvalidHandle;
  State& state = call.state;
  state.Enqueue(
      stream, [=, &state] { return CopyWork(state, to, from, static_cast<int64_t>(bytes)); },
      CopyActivity(bytes));
  return Error::kSuccess;
}

Error cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes, StreamHandle stream) {
  KILN_STANDIN_CALL(cuMemcpyHtoDAsync_v2, kContext);
  if (!CheckStream(call.state, stream)) return Error::kInvalidHandle;
  State& state = call.state;
  auto copy = [=, &state](const void* source) {
    if (state.Holder(to, static_cast<int64_t>(bytes)) == nullptr) return Error::kIllegalAddress;
    std::memcpy(reinterpret_cast<void*>(to), source, bytes);
    ++state.copies;
    return Error::kSuccess;
  };
  if (state.PinnedHolder(from) != nullptr) {
    state.Enqueue(
        stream, [=] { return copy(from); }, CopyActivity(bytes));
  } else {
    std::string staged(static_cast<const char*>(from), bytes);
    state.Enqueue(
        stream, [=] { return copy(staged.data()); }, CopyActivity(bytes));
  }
  return Error::kSuccess;
}

Error cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes, StreamHandle stream) {
  KILN_STANDIN_CALL(cuMemcpyDtoHAsync_v2, kContext);
  if (!CheckStream(call.state, stream)) return Error::kInvalidHandle;
  State& state = call.state;
  state.Enqueue(
      stream,
      [=, &state] {
        if (state.Holder(from, static_cast<int64_t>(bytes)) == nullptr)
          return Error::kIllegalAddress;
        std::memcpy(to, reinterpret_cast<void*>(from), bytes);
        ++state.copies;
        return Error::kSuccess;
      },
      CopyActivity(bytes));
  // As the driver, which stages what is not pinned.
  if (state.PinnedHolder(to) == nullptr) state.RunStream(stream, call.context);
  return call.context->lost;
}

Error cuMemsetD8Async(DevicePointer to, unsigned char value, size_t bytes, StreamHandle stream) {
  KILN_STANDIN_CALL(cuMemsetD8Async, kContext);
  if (!CheckStream(call.state, stream)) return Error::kInvalidHandle;
  State& state = call.state;
  state.Enqueue(
      stream,
      [=, &state] {
        if (state.Holder(to, static_cast<int64_t>(bytes)) == nullptr) return Error::kIllegalAddress;
        std::memset(reinterpret_cast<void*>(to), value, bytes);
        return Error::kSuccess;
      },
      Activity{ActivityKind::kMemset, "", static_cast<int64_t>(bytes), 0, 0});
  return Error::kSuccess;
}

}  // namespace kiln::device::cuda

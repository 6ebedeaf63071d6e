#include "plugin/buffer.h"

#include <array>

#include "plugin/dtype.h"
#include "plugin/error.h"
#include "plugin/event.h"

namespace kiln_jax {
namespace {

constexpr size_t kMaxRank = 64;

/** Row-major orders of all ranks: the last `rank` numbers. */
constexpr std::array<int64_t, kMaxRank> kDescending = [] {
  std::array<int64_t, kMaxRank> numbers = {};
  for (size_t i = 0; i < kMaxRank; ++i) numbers[i] = static_cast<int64_t>(kMaxRank - 1 - i);
  return numbers;
}();

/** Arrays up to this size are copied to a caller that asks before they are ready: it can be
 *  interrupted then. */
constexpr size_t kCopiedBytes = 1 << 20;

/** The address of the elements, without a wait for them. */
PJRT_Error* Address(PJRT_Buffer* buffer, const void** address) {
  const BufferHandle memory = Retain(buffer);
  if (memory == nullptr) return DeletedError();
  return TakeError(kiln_buffer_address(memory.get(), address));
}

}  // namespace

PJRT_Error* ReadSpec(const std::shared_ptr<Client>& client, PJRT_Memory* memory,
                     PJRT_Buffer_Type type, const int64_t* dims, size_t rank,
                     const PJRT_Buffer_MemoryLayout* layout, BufferSpec* spec) {
  const kiln_dtype dtype = DtypeOf(type);
  if (dtype == 0) return UnimplementedError("buffers of the element type " + std::to_string(type));
  spec->client = client;
  spec->memory = memory == nullptr ? client->memory_list[0] : memory;
  spec->type = type;
  spec->dims.assign(dims, dims + rank);
  int64_t bytes = ElementBytes(dtype);
  for (const int64_t size : spec->dims) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) {
      return InvalidArgument("the sizes of the array are negative or too large");
    }
  }
  spec->bytes = static_cast<size_t>(bytes);
  return ReadLayout(layout, spec->dims, ElementBytes(dtype), &spec->layout);
}

BufferHandle Retain(PJRT_Buffer* buffer) {
  std::lock_guard<std::mutex> lock(buffer->mutex);
  return Share(buffer->buffer);
}

PJRT_Error* DeletedError() { return InvalidArgument("the buffer has been deleted or donated"); }

PJRT_Error* BufferDestroy(PJRT_Buffer_Destroy_Args* args) {
  delete args->buffer;
  return nullptr;
}

PJRT_Error* BufferElementType(PJRT_Buffer_ElementType_Args* args) {
  args->type = args->buffer->type;
  return nullptr;
}

PJRT_Error* BufferDimensions(PJRT_Buffer_Dimensions_Args* args) {
  args->dims = args->buffer->dims.data();
  args->num_dims = args->buffer->dims.size();
  return nullptr;
}

PJRT_Error* BufferUnpaddedDimensions(PJRT_Buffer_UnpaddedDimensions_Args* args) {
  args->unpadded_dims = args->buffer->dims.data();
  args->num_dims = args->buffer->dims.size();
  return nullptr;
}

PJRT_Error* BufferDynamicDimensionIndices(PJRT_Buffer_DynamicDimensionIndices_Args* args) {
  args->dynamic_dim_indices = nullptr;
  args->num_dynamic_dims = 0;
  return nullptr;
}

PJRT_Error* BufferGetMemoryLayout(PJRT_Buffer_GetMemoryLayout_Args* args) {
  const size_t rank = args->buffer->dims.size();
  if (rank > kMaxRank) return UnimplementedError("the layout of an array of rank 65 or more");
  args->layout = {};
  args->layout.struct_size = sizeof(PJRT_Buffer_MemoryLayout);
  args->layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  args->layout.tiled.struct_size = sizeof(PJRT_Buffer_MemoryLayout_Tiled);
  const Layout& layout = args->buffer->layout;
  args->layout.tiled.minor_to_major =
      layout.empty() ? kDescending.data() + (kMaxRank - rank) : layout.data();
  args->layout.tiled.minor_to_major_size = rank;
  return nullptr;
}

PJRT_Error* BufferOnDeviceSizeInBytes(PJRT_Buffer_OnDeviceSizeInBytes_Args* args) {
  args->on_device_size_in_bytes = args->buffer->bytes;
  return nullptr;
}

PJRT_Error* BufferDevice(PJRT_Buffer_Device_Args* args) {
  args->device = args->buffer->memory->device;
  return nullptr;
}

PJRT_Error* BufferMemory(PJRT_Buffer_Memory_Args* args) {
  args->memory = args->buffer->memory;
  return nullptr;
}

PJRT_Error* BufferDelete(PJRT_Buffer_Delete_Args* args) {
  BufferHandle last;  // released behind the lock; executions that read it have their own
  std::lock_guard<std::mutex> lock(args->buffer->mutex);
  last.swap(args->buffer->buffer);
  return nullptr;
}

PJRT_Error* BufferIsDeleted(PJRT_Buffer_IsDeleted_Args* args) {
  std::lock_guard<std::mutex> lock(args->buffer->mutex);
  args->is_deleted = args->buffer->buffer == nullptr;
  return nullptr;
}

PJRT_Error* BufferIsOnCpu(PJRT_Buffer_IsOnCpu_Args* args) {
  // True makes callers ask for the address, wait for the value without looking for signals, and
  // read in place. Small arrays that are not ready are copied instead. The error of a failed value
  // is told by copies. False stays: jaxlib asks twice for one copy, and ends the process where the
  // second answer is true.
  args->is_on_cpu = false;
  if (args->buffer->is_copied) return nullptr;
  const bool is_gpu = args->buffer->client->is_gpu && args->buffer->memory->kind_id == 0;
  const bool is_token = args->buffer->type == PJRT_Buffer_Type_TOKEN;
  if (is_gpu || is_token || !args->buffer->layout.empty()) return nullptr;
  const BufferHandle memory = Retain(args->buffer);
  if (memory == nullptr) return nullptr;
  kiln_event* ready = nullptr;
  kiln_error* error = kiln_buffer_ready(memory.get(), &ready);
  const EventHandle owner(ready);
  if (error == nullptr && kiln_event_is_ready(ready) != 0) {
    error = kiln_event_wait(ready, 0);
    args->is_on_cpu = error == nullptr;
  } else if (error == nullptr) {
    args->is_on_cpu = args->buffer->bytes > kCopiedBytes;
    if (!args->is_on_cpu) args->buffer->is_copied = true;
  }
  kiln_error_release(error);
  return nullptr;
}

PJRT_Error* BufferReadyEvent(PJRT_Buffer_ReadyEvent_Args* args) {
  const BufferHandle memory = Retain(args->buffer);
  if (memory == nullptr) return DeletedError();
  kiln_event* ready = nullptr;
  if (kiln_error* error = kiln_buffer_ready(memory.get(), &ready)) return TakeError(error);
  args->event = MakeEvent(EventHandle(ready));
  return nullptr;
}

PJRT_Error* BufferUnsafePointer(PJRT_Buffer_UnsafePointer_Args* args) {
  const void* address = nullptr;
  if (PJRT_Error* error = Address(args->buffer, &address)) return error;
  args->buffer_pointer = reinterpret_cast<uintptr_t>(address);
  return nullptr;
}

PJRT_Error* BufferIncreaseReferences(PJRT_Buffer_IncreaseExternalReferenceCount_Args* args) {
  PJRT_Buffer* buffer = args->buffer;
  std::lock_guard<std::mutex> lock(buffer->mutex);
  if (buffer->buffer == nullptr) return DeletedError();
  if (buffer->external++ == 0) buffer->held = Share(buffer->buffer);
  return nullptr;
}

PJRT_Error* BufferDecreaseReferences(PJRT_Buffer_DecreaseExternalReferenceCount_Args* args) {
  PJRT_Buffer* buffer = args->buffer;
  BufferHandle last;  // released behind the lock
  std::lock_guard<std::mutex> lock(buffer->mutex);
  if (buffer->external == 0) return InvalidArgument("the buffer has no external references");
  if (--buffer->external == 0) last.swap(buffer->held);
  return nullptr;
}

PJRT_Error* BufferDataPointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args* args) {
  const void* address = nullptr;
  if (PJRT_Error* error = Address(args->buffer, &address)) return error;
  args->device_memory_ptr = const_cast<void*>(address);
  return nullptr;
}

}  // namespace kiln_jax

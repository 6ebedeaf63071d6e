// Transfers between the caller's memory and buffers.
#include <cstdlib>
#include <cstring>
#include <utility>

#include "plugin/buffer.h"
#include "plugin/dtype.h"
#include "plugin/error.h"
#include "plugin/event.h"

namespace kiln_jax {
namespace {

/** Arrays up to this size are copied rather than borrowed: the caller gets its memory back at once,
 *  and the copy can be donated. */
constexpr int64_t kSmallBytes = 16 << 10;

/** Arrays up to this size are copied to the host by the calling thread, if they are ready. */
constexpr size_t kCopyAtOnceBytes = 1 << 20;

/** An array in the caller's memory. */
struct HostArray {
  const char* data;
  kiln_dtype dtype;
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;  // in bytes; empty: row-major
  int64_t element_bytes;
  int64_t bytes;  // of the elements in row-major order
};

/** Copies the elements into row-major order at `to`, which advances. */
void Gather(const HostArray& array, const char* from, size_t dimension, char** to) {
  if (dimension == array.dims.size()) {
    std::memcpy(*to, from, array.element_bytes);
    *to += array.element_bytes;
    return;
  }
  for (int64_t i = 0; i < array.dims[dimension]; ++i) {
    Gather(array, from + i * array.strides[dimension], dimension + 1, to);
  }
}

PJRT_Error* ReadHostArray(const PJRT_Client_BufferFromHostBuffer_Args& args, HostArray* array) {
  array->data = static_cast<const char*>(args.data);
  array->dtype = DtypeOf(args.type);
  if (array->dtype == 0) {
    return UnimplementedError("buffers of the element type " + std::to_string(args.type));
  }
  array->element_bytes = ElementBytes(array->dtype);
  array->dims.assign(args.dims, args.dims + args.num_dims);
  array->bytes = array->element_bytes;
  for (const int64_t size : array->dims) {
    if (size < 0 || __builtin_mul_overflow(array->bytes, size, &array->bytes)) {
      return InvalidArgument("the sizes of the array are negative or too large");
    }
  }
  if (args.num_byte_strides != 0) {
    if (args.num_byte_strides != args.num_dims) {
      return InvalidArgument("an array of rank " + std::to_string(args.num_dims) + " has " +
                             std::to_string(args.num_byte_strides) + " strides");
    }
    PJRT_Buffer_MemoryLayout layout = {};
    layout.type = PJRT_Buffer_MemoryLayout_Type_Strides;
    layout.strides.byte_strides = args.byte_strides;
    layout.strides.num_byte_strides = args.num_byte_strides;
    if (array->bytes != 0 && !IsRowMajor(&layout, array->dims, array->element_bytes)) {
      array->strides.assign(args.byte_strides, args.byte_strides + args.num_dims);
    }
  }
  if (array->data == nullptr && array->bytes != 0) return InvalidArgument("`data` is NULL");
  if (!IsRowMajor(args.device_layout, array->dims, array->element_bytes)) {
    return UnimplementedError("buffers that are not in row-major order");
  }
  return nullptr;
}

/** Makes a buffer of a strided array. */
kiln_error* MakeFromStrides(const HostArray& array, kiln_device* device, kiln_buffer** buffer) {
  const size_t capacity = (array.bytes + KILN_ALIGNMENT - 1) / KILN_ALIGNMENT * KILN_ALIGNMENT;
  void* memory = std::aligned_alloc(KILN_ALIGNMENT, capacity);
  if (memory == nullptr) throw std::bad_alloc();
  char* to = static_cast<char*>(memory);
  Gather(array, array.data, 0, &to);
  kiln_error* error =
      kiln_buffer_adopt_host(device, array.dtype, array.dims.data(), array.dims.size(), memory,
                             array.bytes, std::free, memory, buffer);
  if (error != nullptr) std::free(memory);
  return error;
}

/** Makes the buffer, and the event for the end of the use of the caller's memory. */
kiln_error* MakeFromHost(const HostArray& array, PJRT_HostBufferSemantics semantics,
                         kiln_device* device, kiln_event** done, bool* borrowed,
                         kiln_buffer** buffer) {
  const int64_t* dims = array.dims.data();
  const size_t rank = array.dims.size();
  if (!array.strides.empty()) return MakeFromStrides(array, device, buffer);
  static const char none[KILN_ALIGNMENT] = {};
  const void* data = array.bytes == 0 ? none : array.data;
  if (semantics == PJRT_HostBufferSemantics_kImmutableOnlyDuringCall ||
      array.bytes <= kSmallBytes) {
    return kiln_buffer_copy_host(device, array.dtype, dims, rank, data, array.bytes, buffer);
  }
  const bool aligned = reinterpret_cast<uintptr_t>(data) % array.element_bytes == 0;
  if (semantics == PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes || !aligned) {
    return kiln_buffer_copy_host_async(device, array.dtype, dims, rank, data, array.bytes, done,
                                       buffer);
  }
  *borrowed = true;
  return kiln_buffer_borrow_host(device, array.dtype, dims, rank, const_cast<void*>(data),
                                 array.bytes, done, buffer);
}

/** Copies the value to the caller's memory: at once if it is small and ready, which saves the way
 *  through another thread; otherwise behind the caller. */
kiln_error* CopyToHost(kiln_buffer* memory, void* to, size_t bytes, kiln_event** done) {
  if (bytes <= kCopyAtOnceBytes) {
    kiln_event* ready = nullptr;
    if (kiln_error* error = kiln_buffer_ready(memory, &ready)) return error;
    const bool is_ready = kiln_event_is_ready(ready) != 0;
    kiln_error* failure = is_ready ? kiln_event_wait(ready, 0) : nullptr;
    if (failure != nullptr) {
      kiln_error_release(failure);
      *done = ready;  // with the failure of the value
      return nullptr;
    }
    kiln_event_release(ready);
    if (is_ready) return kiln_buffer_copy_to_host(memory, to, bytes);
  }
  return kiln_buffer_copy_to_host_async(memory, to, bytes, done);
}

/** Copies a buffer within the device, without a wait. */
PJRT_Error* Copy(PJRT_Buffer* buffer, PJRT_Device* device, PJRT_Buffer** copy) {
  kiln_buffer* memory = Retain(buffer);
  if (memory == nullptr) return DeletedError();
  kiln_buffer* made = nullptr;
  kiln_error* error = kiln_buffer_copy_to_device_async(memory, device->device, nullptr, &made);
  kiln_buffer_release(memory);
  if (error != nullptr) return TakeError(error);
  *copy = MakeBuffer(buffer->client, buffer->type, buffer->dims, buffer->bytes, made);
  return nullptr;
}

}  // namespace

PJRT_Error* BufferFromHost(PJRT_Client_BufferFromHostBuffer_Args* args) {
  if (args->host_buffer_semantics > PJRT_HostBufferSemantics_kImmutableZeroCopy) {
    return UnimplementedError("buffers in memory that the caller changes (kMutableZeroCopy)");
  }
  HostArray array;
  if (PJRT_Error* error = ReadHostArray(*args, &array)) return error;
  const std::shared_ptr<Client>& client = args->client->client;
  kiln_event* done = nullptr;
  kiln_buffer* memory = nullptr;
  bool borrowed = false;
  if (kiln_error* error = MakeFromHost(array, args->host_buffer_semantics, client->device.device,
                                       &done, &borrowed, &memory)) {
    return TakeError(error);
  }
  PJRT_Event* event;
  try {
    event = MakeEvent(done);
  } catch (...) {
    kiln_buffer_release(memory);
    throw;
  }
  try {
    args->buffer = MakeBuffer(client, args->type, std::move(array.dims), array.bytes, memory);
  } catch (...) {
    kiln_event_release(event->event);
    delete event;
    throw;
  }
  args->buffer->borrowed = borrowed;
  args->done_with_host_buffer = event;
  return nullptr;
}

PJRT_Error* BufferToHost(PJRT_Buffer_ToHostBuffer_Args* args) {
  const PJRT_Buffer& source = *args->src;
  if (args->dst == nullptr) {
    args->dst_size = source.bytes;
    return nullptr;
  }
  if (args->dst_size < source.bytes) {
    return InvalidArgument("the array has " + std::to_string(source.bytes) + " bytes, and `dst` " +
                           std::to_string(args->dst_size));
  }
  if (!IsRowMajor(args->host_layout, source.dims, ElementBytes(DtypeOf(source.type)))) {
    return UnimplementedError("transfers to the host in another order than row-major");
  }
  kiln_buffer* memory = Retain(args->src);
  if (memory == nullptr) return DeletedError();
  kiln_event* done = nullptr;
  kiln_error* error = CopyToHost(memory, args->dst, source.bytes, &done);
  kiln_buffer_release(memory);
  if (error != nullptr) return TakeError(error);
  args->event = MakeEvent(done);
  return nullptr;
}

PJRT_Error* BufferCopyToDevice(PJRT_Buffer_CopyToDevice_Args* args) {
  return Copy(args->buffer, args->dst_device, &args->dst_buffer);
}

PJRT_Error* BufferCopyToMemory(PJRT_Buffer_CopyToMemory_Args* args) {
  return Copy(args->buffer, args->dst_memory->device, &args->dst_buffer);
}

}  // namespace kiln_jax

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
constexpr size_t kSmallBytes = 16 << 10;

/** Arrays up to this size are copied to the host by the calling thread, if they are ready. */
constexpr size_t kCopyAtOnceBytes = 1 << 20;

/** An array in the caller's memory. */
struct HostArray {
  const char* data;
  kiln_dtype dtype;
  BufferSpec spec;  // of the buffer to be made
  // In the buffer's order of elements.
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;  // in bytes; empty: dense
  int64_t element_bytes;
};

/** The bits of an integer of less than a byte; 0: another type. */
int NarrowBits(kiln_dtype dtype) {
  if (dtype == KILN_S4 || dtype == KILN_U4) return 4;
  return dtype == KILN_S2 || dtype == KILN_U2 ? 2 : 0;
}

/** Gives the bytes of narrow integers their value: NumPy's have it in their low bits only. */
void ExtendNarrow(kiln_dtype dtype, char* data, int64_t count) {
  const int shift = 8 - NarrowBits(dtype);
  const bool is_signed = dtype == KILN_S4 || dtype == KILN_S2;
  for (char* end = data + count; data != end; ++data) {
    const auto high = static_cast<uint8_t>(*data << shift);
    *data = is_signed ? static_cast<int8_t>(high) >> shift : high >> shift;
  }
}

PJRT_Error* ReadHostArray(const PJRT_Client_BufferFromHostBuffer_Args& args, HostArray* array) {
  PJRT_Memory* memory = args.memory;
  if (memory == nullptr && args.device != nullptr) memory = args.device->memories[0];
  BufferSpec& spec = array->spec;
  if (PJRT_Error* error = ReadSpec(args.client->client, memory, args.type, args.dims, args.num_dims,
                                   args.device_layout, &spec)) {
    return error;
  }
  array->data = static_cast<const char*>(args.data);
  array->dtype = DtypeOf(args.type);
  if (array->dtype == KILN_TOKEN) return UnimplementedError("tokens from the host");
  if (array->data == nullptr && spec.bytes != 0) return InvalidArgument("`data` is NULL");
  array->element_bytes = ElementBytes(array->dtype);
  array->dims = InMemoryOrder(spec.dims, spec.layout);
  if (spec.bytes == 0) return nullptr;
  std::vector<int64_t> strides = DenseStrides(spec.dims, {}, array->element_bytes);
  if (args.num_byte_strides != 0) {
    if (args.num_byte_strides != args.num_dims) {
      return InvalidArgument("an array of rank " + std::to_string(args.num_dims) + " has " +
                             std::to_string(args.num_byte_strides) + " strides");
    }
    strides.assign(args.byte_strides, args.byte_strides + args.num_dims);
  }
  strides = InMemoryOrder(strides, spec.layout);
  const std::vector<int64_t> dense = DenseStrides(array->dims, {}, array->element_bytes);
  // Narrow integers are never borrowed (ExtendNarrow).
  if (NarrowBits(array->dtype) != 0) array->strides = strides;
  for (size_t i = 0; i < strides.size(); ++i) {
    if (array->dims[i] != 1 && strides[i] != dense[i]) array->strides = strides;
  }
  return nullptr;
}

/** Makes a buffer of a strided array. */
kiln_error* MakeFromStrides(const HostArray& array, kiln_buffer** buffer) {
  const size_t bytes = array.spec.bytes;
  const size_t capacity = (bytes + KILN_ALIGNMENT - 1) / KILN_ALIGNMENT * KILN_ALIGNMENT;
  void* memory = std::aligned_alloc(KILN_ALIGNMENT, capacity);
  if (memory == nullptr) throw std::bad_alloc();
  CopyStrided(array.data, array.strides, static_cast<char*>(memory),
              DenseStrides(array.dims, {}, array.element_bytes), array.dims, array.element_bytes);
  if (NarrowBits(array.dtype) != 0) {
    ExtendNarrow(array.dtype, static_cast<char*>(memory), static_cast<int64_t>(bytes));
  }
  kiln_error* error =
      kiln_buffer_adopt_host(array.spec.memory->place, array.dtype, array.dims.data(),
                             array.dims.size(), memory, bytes, std::free, memory, buffer);
  if (error != nullptr) std::free(memory);
  return error;
}

/** Makes the buffer, and the event for the end of the use of the caller's memory. */
kiln_error* MakeFromHost(const HostArray& array, PJRT_HostBufferSemantics semantics,
                         kiln_event** done, bool* borrowed, kiln_buffer** buffer) {
  kiln_device* device = array.spec.memory->place;
  const int64_t* dims = array.dims.data();
  const size_t rank = array.dims.size(), bytes = array.spec.bytes;
  if (bytes != 0 && (!array.strides.empty() || NarrowBits(array.dtype) != 0)) {
    return MakeFromStrides(array, buffer);
  }
  static const char none[KILN_ALIGNMENT] = {};
  const void* data = bytes == 0 ? none : array.data;
  if (semantics == PJRT_HostBufferSemantics_kImmutableOnlyDuringCall || bytes <= kSmallBytes) {
    return kiln_buffer_copy_host(device, array.dtype, dims, rank, data, bytes, buffer);
  }
  const bool aligned = reinterpret_cast<uintptr_t>(data) % array.element_bytes == 0;
  if (semantics == PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes || !aligned) {
    return kiln_buffer_copy_host_async(device, array.dtype, dims, rank, data, bytes, done, buffer);
  }
  *borrowed = true;
  return kiln_buffer_borrow_host(device, array.dtype, dims, rank, const_cast<void*>(data), bytes,
                                 done, buffer);
}

/** Copies the value to the caller's memory: at once if it is small and ready, which saves the way
 *  through another thread; otherwise behind the caller. */
kiln_error* CopyToHost(kiln_buffer* memory, void* to, size_t bytes, kiln_event** done) {
  if (bytes <= kCopyAtOnceBytes) {
    kiln_event* ready = nullptr;
    if (kiln_error* error = kiln_buffer_ready(memory, &ready)) return error;
    EventHandle owner(ready);
    if (kiln_event_is_ready(ready) != 0) {
      kiln_error* failure = kiln_event_wait(ready, 0);
      if (failure == nullptr) return kiln_buffer_copy_to_host(memory, to, bytes);
      kiln_error_release(failure);
      *done = owner.release();  // with the failure of the value
      return nullptr;
    }
  }
  return kiln_buffer_copy_to_host_async(memory, to, bytes, done);
}

/** The same into another order of elements; waits for the value. */
kiln_error* CopyReordered(const PJRT_Buffer& source, kiln_buffer* memory, const Layout& to_layout,
                          int64_t element_bytes, void* to) {
  std::vector<char> elements(source.bytes);
  if (kiln_error* error = kiln_buffer_copy_to_host(memory, elements.data(), source.bytes)) {
    return error;
  }
  if (source.bytes == 0) return nullptr;
  CopyStrided(elements.data(), DenseStrides(source.dims, source.layout, element_bytes),
              static_cast<char*>(to), DenseStrides(source.dims, to_layout, element_bytes),
              source.dims, element_bytes);
  return nullptr;
}

/** Copies a buffer to a memory of the client, without a wait. */
PJRT_Error* Copy(PJRT_Buffer* buffer, PJRT_Memory* to, PJRT_Buffer** copy) {
  const BufferHandle memory = Retain(buffer);
  if (memory == nullptr) return DeletedError();
  kiln_buffer* made = nullptr;
  if (kiln_error* error =
          kiln_buffer_copy_to_device_async(memory.get(), to->place, nullptr, &made)) {
    return TakeError(error);
  }
  BufferHandle owner(made);
  BufferSpec spec = *buffer;
  spec.memory = to;
  *copy = new PJRT_Buffer(std::move(spec), std::move(owner));
  return nullptr;
}

}  // namespace

PJRT_Error* BufferFromHost(PJRT_Client_BufferFromHostBuffer_Args* args) {
  if (args->host_buffer_semantics > PJRT_HostBufferSemantics_kImmutableZeroCopy) {
    return UnimplementedError("buffers in memory that the caller changes (kMutableZeroCopy)");
  }
  HostArray array;
  if (PJRT_Error* error = ReadHostArray(*args, &array)) return error;
  kiln_event* done = nullptr;
  kiln_buffer* made = nullptr;
  bool borrowed = false;
  if (kiln_error* error =
          MakeFromHost(array, args->host_buffer_semantics, &done, &borrowed, &made)) {
    return TakeError(error);
  }
  EventHandle event(done);
  BufferHandle memory(made);
  auto buffer = std::make_unique<PJRT_Buffer>(std::move(array.spec), std::move(memory));
  // GPUs copy at once.
  buffer->borrowed = borrowed && !(buffer->client->is_gpu && buffer->memory->kind_id == 0);
  args->done_with_host_buffer = MakeEvent(std::move(event));
  args->buffer = buffer.release();
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
  const int64_t element_bytes = ElementBytes(DtypeOf(source.type));
  Layout layout;
  if (PJRT_Error* error = ReadLayout(args->host_layout, source.dims, element_bytes, &layout)) {
    return error;
  }
  const BufferHandle memory = Retain(args->src);
  if (memory == nullptr) return DeletedError();
  kiln_event* done = nullptr;
  kiln_error* error = layout == source.layout
                          ? CopyToHost(memory.get(), args->dst, source.bytes, &done)
                          : CopyReordered(source, memory.get(), layout, element_bytes, args->dst);
  if (error != nullptr) return TakeError(error);
  args->event = MakeEvent(EventHandle(done));
  return nullptr;
}

PJRT_Error* BufferCopyToDevice(PJRT_Buffer_CopyToDevice_Args* args) {
  return Copy(args->buffer, args->dst_device->memories[0], &args->dst_buffer);
}

PJRT_Error* BufferCopyToMemory(PJRT_Buffer_CopyToMemory_Args* args) {
  return Copy(args->buffer, args->dst_memory, &args->dst_buffer);
}

}  // namespace kiln_jax

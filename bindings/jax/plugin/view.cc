// Buffers in memory of others, as DLPack's tensors are.
#include <cstdlib>
#include <utility>

#include "plugin/buffer.h"
#include "plugin/dtype.h"
#include "plugin/error.h"

namespace kiln_jax {
namespace {

/** The caller's function for the end of the use of its memory. */
struct OnDelete {
  void (*function)(void* memory, void* user_arg);
  void* memory;
  void* user_arg;
};

void CallOnDelete(void* user_data) {
  const OnDelete* call = static_cast<OnDelete*>(user_data);
  if (call->function != nullptr) call->function(call->memory, call->user_arg);
  delete call;
}

/** Makes a buffer with a copy in row-major order. */
kiln_error* MakeCopy(kiln_device* device, kiln_dtype dtype, const std::vector<int64_t>& dims,
                     const void* data, const Layout& layout, size_t bytes, kiln_buffer** buffer) {
  const int64_t element_bytes = ElementBytes(dtype);
  std::vector<char> elements(bytes);
  if (bytes != 0) {
    CopyStrided(static_cast<const char*>(data), DenseStrides(dims, layout, element_bytes),
                elements.data(), DenseStrides(dims, {}, element_bytes), dims, element_bytes);
  }
  return kiln_buffer_copy_host(device, dtype, dims.data(), dims.size(), elements.data(), bytes,
                               buffer);
}

}  // namespace

PJRT_Error* BufferView(PJRT_Client_CreateViewOfDeviceBuffer_Args* args) {
  PJRT_Memory* memory = nullptr;
  if (args->struct_size >= sizeof(*args)) memory = args->memory;
  if (memory == nullptr && args->device != nullptr) memory = args->device->memories[0];
  if (memory == nullptr) return InvalidArgument("neither a memory nor a device is given");
  BufferSpec spec;
  if (PJRT_Error* error = ReadSpec(args->client->client, memory, args->element_type, args->dims,
                                   args->num_dims, args->layout, &spec)) {
    return error;
  }
  const kiln_dtype dtype = DtypeOf(spec.type);
  if (dtype == KILN_TOKEN) return UnimplementedError("views of tokens");
  const Layout layout = std::exchange(spec.layout, {});  // of the caller's memory
  void* data = args->device_buffer_ptr;
  const bool is_gpu = args->client->client->is_gpu && memory->kind_id == 0;
  if (is_gpu && !layout.empty()) return UnimplementedError("views in another order than row-major");
  const bool is_aligned =
      reinterpret_cast<uintptr_t>(data) % static_cast<uint64_t>(ElementBytes(dtype)) == 0;
  const bool is_copied = !is_gpu && (!layout.empty() || !is_aligned || spec.bytes == 0);
  auto on_delete = std::make_unique<OnDelete>(
      OnDelete{args->on_delete_callback, data, args->on_delete_callback_arg});
  kiln_buffer* made = nullptr;
  kiln_error* error =
      is_copied ? MakeCopy(memory->place, dtype, spec.dims, data, layout, spec.bytes, &made)
                : (is_gpu ? kiln_buffer_adopt_device : kiln_buffer_adopt_host)(
                      memory->place, dtype, spec.dims.data(), spec.dims.size(), data, spec.bytes,
                      CallOnDelete, on_delete.get(), &made);
  if (error != nullptr) return TakeError(error);
  BufferHandle buffer(made);
  OnDelete* done = on_delete.release();
  if (is_copied) CallOnDelete(done);
  args->buffer = new PJRT_Buffer(std::move(spec), std::move(buffer));
  args->buffer->borrowed = !is_copied;
  return nullptr;
}

}  // namespace kiln_jax

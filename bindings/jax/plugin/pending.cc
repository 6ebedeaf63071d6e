#include "plugin/pending.h"

#include <utility>

#include "plugin/dtype.h"
#include "plugin/error.h"

namespace kiln_jax {

PJRT_Error* ReadSpec(const std::shared_ptr<Client>& client, PJRT_Memory* memory,
                     PJRT_Buffer_Type type, const int64_t* dims, size_t rank,
                     const PJRT_Buffer_MemoryLayout* layout, BufferSpec* spec) {
  const kiln_dtype dtype = DtypeOf(type);
  if (dtype == 0) return UnimplementedError("buffers of the element type " + std::to_string(type));
  spec->client = client;
  spec->memory = memory == nullptr ? client->memory_list[0] : memory;
  spec->type = type;
  spec->dims.assign(dims, dims + rank);
  size_t bytes = static_cast<size_t>(ElementBytes(dtype));
  for (const int64_t size : spec->dims) {
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes)) {
      return InvalidArgument("the sizes of the array are negative or too large");
    }
  }
  Layout order;
  if (PJRT_Error* error = ReadLayout(layout, spec->dims, ElementBytes(dtype), &order)) return error;
  if (!order.empty()) return UnimplementedError("buffers that are not in row-major order");
  spec->bytes = bytes;
  return nullptr;
}

PJRT_Error* Allocate(const BufferSpec& spec, BufferHandle* memory) {
  kiln_buffer* made = nullptr;
  kiln_error* error = kiln_buffer_create(spec.memory->place, DtypeOf(spec.type), spec.dims.data(),
                                         spec.dims.size(), &made);
  if (error != nullptr) return TakeError(error);
  memory->reset(made);
  return nullptr;
}

PJRT_Error* AllocatePending(const BufferSpec& spec, BufferHandle* memory, EventHandle* ready) {
  if (PJRT_Error* error = Allocate(spec, memory)) return error;
  kiln_event* event = nullptr;
  if (kiln_error* error = kiln_event_create(spec.client->context, &event)) return TakeError(error);
  ready->reset(event);
  return TakeError(kiln_buffer_delay(memory->get(), event));
}

PJRT_Buffer* MakeBuffer(BufferSpec spec, BufferHandle memory) {
  return MakeBuffer(std::move(spec.client), spec.memory, spec.type, std::move(spec.dims),
                    spec.bytes, memory.release());
}

void SetEvent(kiln_event* event, PJRT_Error_Code code, std::string_view message) {
  kiln_error* failure = nullptr;
  if (code != PJRT_Error_Code_OK) {
    failure = kiln_error_create(static_cast<kiln_code>(code), message.data(), message.size());
  }
  kiln_error_release(kiln_event_set(event, failure));
  kiln_error_release(failure);
}

}  // namespace kiln_jax

#include "plugin/pending.h"

#include "plugin/dtype.h"
#include "plugin/error.h"

namespace kiln_jax {

PJRT_Error* Allocate(const BufferSpec& spec, BufferHandle* memory) {
  if (!spec.layout.empty()) return UnimplementedError("buffers that are not in row-major order");
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

void SetEvent(kiln_event* event, PJRT_Error_Code code, std::string_view message) {
  kiln_error* failure = nullptr;
  if (code != PJRT_Error_Code_OK) {
    failure = kiln_error_create(static_cast<kiln_code>(code), message.data(), message.size());
  }
  kiln_error_release(kiln_event_set(event, failure));
  kiln_error_release(failure);
}

}  // namespace kiln_jax

/** @file
 *  Buffers whose values come later. */
#ifndef KILN_JAX_PLUGIN_PENDING_H_
#define KILN_JAX_PLUGIN_PENDING_H_

#include <memory>
#include <string_view>
#include <vector>

#include "plugin/buffer.h"
#include "plugin/handles.h"

namespace kiln_jax {

/** The type and place of a buffer to be made. */
struct BufferSpec {
  std::shared_ptr<Client> client;
  PJRT_Memory* memory = nullptr;
  PJRT_Buffer_Type type = PJRT_Buffer_Type_INVALID;
  std::vector<int64_t> dims;
  size_t bytes = 0;
};

/** Reads a shape: INVALID_ARGUMENT or UNIMPLEMENTED for shapes that no buffer can have.
 *  @param memory NULL: the client's default */
PJRT_Error* ReadSpec(const std::shared_ptr<Client>& client, PJRT_Memory* memory,
                     PJRT_Buffer_Type type, const int64_t* dims, size_t rank,
                     const PJRT_Buffer_MemoryLayout* layout, BufferSpec* spec);

/** Makes memory for an array. */
PJRT_Error* Allocate(const BufferSpec& spec, BufferHandle* memory);

/** The same, with a value that waits for `ready`. */
PJRT_Error* AllocatePending(const BufferSpec& spec, BufferHandle* memory, EventHandle* ready);

/** Makes a buffer of the caller's. */
PJRT_Buffer* MakeBuffer(BufferSpec spec, BufferHandle memory);

/** Sets an event, with a failure unless the code is OK; nothing if it has been set. */
void SetEvent(kiln_event* event, PJRT_Error_Code code, std::string_view message);

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_PENDING_H_

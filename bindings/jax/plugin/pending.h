/** @file
 *  Buffers whose values come later. */
#ifndef KILN_JAX_PLUGIN_PENDING_H_
#define KILN_JAX_PLUGIN_PENDING_H_

#include <string_view>

#include "plugin/buffer.h"

namespace kiln_jax {

/** Makes memory for an array. UNIMPLEMENTED unless it is in row-major order. */
PJRT_Error* Allocate(const BufferSpec& spec, BufferHandle* memory);

/** The same, with a value that waits for `ready`. */
PJRT_Error* AllocatePending(const BufferSpec& spec, BufferHandle* memory, EventHandle* ready);

/** Sets an event, with a failure unless the code is OK; nothing if it has been set. */
void SetEvent(kiln_event* event, PJRT_Error_Code code, std::string_view message);

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_PENDING_H_

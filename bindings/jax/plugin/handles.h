/** @file
 *  References to the library's objects, released at the end of their scopes. */
#ifndef KILN_JAX_PLUGIN_HANDLES_H_
#define KILN_JAX_PLUGIN_HANDLES_H_

#include <memory>

#include "kiln/buffer.h"
#include "kiln/event.h"

namespace kiln_jax {

struct Release {
  void operator()(kiln_buffer* buffer) const { kiln_buffer_release(buffer); }
  void operator()(kiln_event* event) const { kiln_event_release(event); }
};

using BufferHandle = std::unique_ptr<kiln_buffer, Release>;
using EventHandle = std::unique_ptr<kiln_event, Release>;

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_HANDLES_H_

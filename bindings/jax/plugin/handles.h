/** @file
 *  References to the library's objects, released at the end of their scopes. */
#ifndef KILN_JAX_PLUGIN_HANDLES_H_
#define KILN_JAX_PLUGIN_HANDLES_H_

#include <memory>

#include "kiln/buffer.h"
#include "kiln/event.h"
#include "kiln/graph.h"
#include "kiln/trace.h"
#include "kiln/types.h"

namespace kiln_jax {

struct Release {
  void operator()(kiln_buffer* buffer) const { kiln_buffer_release(buffer); }
  void operator()(kiln_event* event) const { kiln_event_release(event); }
  void operator()(kiln_graph* graph) const { kiln_graph_release(graph); }
  void operator()(kiln_text* text) const { kiln_text_release(text); }
  void operator()(kiln_trace* trace) const { kiln_trace_release(trace); }
};

using BufferHandle = std::unique_ptr<kiln_buffer, Release>;
using EventHandle = std::unique_ptr<kiln_event, Release>;
using GraphHandle = std::unique_ptr<kiln_graph, Release>;
using TextHandle = std::unique_ptr<kiln_text, Release>;
using TraceHandle = std::unique_ptr<kiln_trace, Release>;

/** Another reference to a buffer; NULL for NULL. */
inline BufferHandle Share(const BufferHandle& buffer) {
  kiln_buffer_retain(buffer.get());
  return BufferHandle(buffer.get());
}

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_HANDLES_H_

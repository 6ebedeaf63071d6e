// Objects of the C ABI, released by destructors, and its errors as statuses.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "kiln/kiln.h"

namespace kiln::run {

template <typename T, void (*release)(T*)>
struct Releasing {
  void operator()(T* handle) const { release(handle); }
};
using Buffer = std::unique_ptr<kiln_buffer, Releasing<kiln_buffer, kiln_buffer_release>>;
using Context = std::unique_ptr<kiln_context, Releasing<kiln_context, kiln_context_release>>;
using Error = std::unique_ptr<kiln_error, Releasing<kiln_error, kiln_error_release>>;
using Executable =
    std::unique_ptr<kiln_executable, Releasing<kiln_executable, kiln_executable_release>>;
using OwnedText = std::unique_ptr<kiln_text, Releasing<kiln_text, kiln_text_release>>;
using Trace = std::unique_ptr<kiln_trace, Releasing<kiln_trace, kiln_trace_release>>;
using Graph = std::unique_ptr<kiln_graph, Releasing<kiln_graph, kiln_graph_release>>;

// A failure of the library, or success for NULL; takes the error.
inline Status StatusOf(kiln_error* taken) {
  const Error error(taken);
  if (!error) return OkStatus();
  size_t length = 0;
  const char* message = kiln_error_message(error.get(), &length);
  return Status(static_cast<Code>(kiln_error_code(error.get())), std::string(message, length));
}

// A context that has the device, "CPU:0"; a GPU is emulated where there is none. With 0 threads it
// has as many as the process may use.
Status OpenContext(const std::string& device_name, int threads, Context* context,
                   kiln_device** device);

}  // namespace kiln::run

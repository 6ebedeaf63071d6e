#include "plugin/profiler.h"

#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "kiln/trace.h"
#include "plugin/client.h"
#include "plugin/error.h"
#include "plugin/handles.h"

/** An error of the profiler has the code and message of one of the plugin. */
struct PLUGIN_Profiler_Error {
  PJRT_Error* error = nullptr;
};

struct PLUGIN_Profiler {
  std::vector<kiln_jax::TraceHandle> traces;  // of each client
  bool is_recording = false;
  std::string collected;
};

namespace kiln_jax {
namespace {

/** `error` as the profiler's; NULL for NULL. */
PLUGIN_Profiler_Error* Wrap(PJRT_Error* error) {
  // The caller has to see a failure, even without memory for its text.
  static PLUGIN_Profiler_Error out_of_memory{OutOfMemory()};
  if (error == nullptr) return nullptr;
  auto* wrapped = new (std::nothrow) PLUGIN_Profiler_Error{error};
  return wrapped == nullptr || error == OutOfMemory() ? (delete wrapped, &out_of_memory) : wrapped;
}

void DestroyError(PLUGIN_Profiler_Error_Destroy_Args* args) {
  if (args->error == nullptr || args->error->error == OutOfMemory()) return;
  PJRT_Error_Destroy_Args inner = {sizeof(inner), nullptr, args->error->error};
  ErrorDestroy(&inner);
  delete args->error;
}

void MessageOf(PLUGIN_Profiler_Error_Message_Args* args) {
  const std::string& message = args->error->error->message;
  args->message = message.c_str();
  args->message_size = message.size();
}

PLUGIN_Profiler_Error* CodeOf(PLUGIN_Profiler_Error_GetCode_Args* args) {
  args->code = static_cast<int>(args->error->error->code);
  return nullptr;
}

PJRT_Error* Create(PLUGIN_Profiler_Create_Args* args) {
  args->profiler = new PLUGIN_Profiler;
  return nullptr;
}

PJRT_Error* Destroy(PLUGIN_Profiler_Destroy_Args* args) {
  delete args->profiler;
  return nullptr;
}

PJRT_Error* Start(PLUGIN_Profiler_Start_Args* args) {
  if (args->profiler->is_recording) return nullptr;
  std::vector<TraceHandle> traces;
  for (const std::shared_ptr<Client>& client : LiveClients()) {
    kiln_trace* trace = nullptr;
    // FAILED_PRECONDITION if another profiler records.
    if (kiln_error* error = kiln_trace_start(client->context, &trace)) return TakeError(error);
    traces.emplace_back(trace);
  }
  args->profiler->traces = std::move(traces);
  args->profiler->is_recording = true;
  return nullptr;
}

PJRT_Error* Stop(PLUGIN_Profiler_Stop_Args* args) {
  args->profiler->is_recording = false;
  for (const TraceHandle& trace : args->profiler->traces) {
    if (kiln_error* error = kiln_trace_stop(trace.get())) return TakeError(error);
  }
  return nullptr;
}

PJRT_Error* CollectData(PLUGIN_Profiler_CollectData_Args* args) {
  PLUGIN_Profiler& profiler = *args->profiler;
  if (args->buffer == nullptr) {
    profiler.collected.clear();
    for (const TraceHandle& trace : profiler.traces) {
      kiln_text* bytes = nullptr;
      if (kiln_error* error = kiln_trace_to_xspace(trace.get(), &bytes)) return TakeError(error);
      const TextHandle owner(bytes);
      size_t size = 0;
      const char* data = kiln_text_data(bytes, &size);
      // Messages one behind the other are one message with the planes of all.
      profiler.collected.append(data, size);
    }
    args->buffer = reinterpret_cast<uint8_t*>(profiler.collected.data());
  } else if (args->buffer_size_in_bytes < profiler.collected.size()) {
    return InvalidArgument("the buffer has " + std::to_string(args->buffer_size_in_bytes) +
                           " bytes, the profile " + std::to_string(profiler.collected.size()));
  } else {
    std::memcpy(args->buffer, profiler.collected.data(), profiler.collected.size());
  }
  args->buffer_size_in_bytes = profiler.collected.size();
  return nullptr;
}

/** An entry of the table: exceptions are made errors. */
template <typename Args, PJRT_Error* (*function)(Args*)>
PLUGIN_Profiler_Error* ProfilerEntry(Args* args) {
  try {
    return Wrap(function(args));
  } catch (const std::bad_alloc&) {
    return Wrap(OutOfMemory());
  }
}

}  // namespace

PLUGIN_Profiler_Api* ProfilerTable() {
  static PLUGIN_Profiler_Api table = {
      sizeof(PLUGIN_Profiler_Api),
      nullptr,
      &DestroyError,
      &MessageOf,
      &CodeOf,
      &ProfilerEntry<PLUGIN_Profiler_Create_Args, Create>,
      &ProfilerEntry<PLUGIN_Profiler_Destroy_Args, Destroy>,
      &ProfilerEntry<PLUGIN_Profiler_Start_Args, Start>,
      &ProfilerEntry<PLUGIN_Profiler_Stop_Args, Stop>,
      &ProfilerEntry<PLUGIN_Profiler_CollectData_Args, CollectData>,
  };
  return &table;
}

}  // namespace kiln_jax

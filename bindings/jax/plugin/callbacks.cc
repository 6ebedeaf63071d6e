#include "plugin/callbacks.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace kiln_jax {
namespace {

/** The state of all calls into Python. Python has one interpreter per process, so there is one. */
struct Gate {
  std::mutex mutex;
  std::condition_variable quiet;
  PythonCallback function = nullptr;  // NULL: closed
  int64_t busy = 0;                   // calls, and threads that release a context
  int64_t executions = 0;             // accepted, and not yet at their end
};

Gate& TheGate() {
  static Gate& gate = *new Gate;  // calls may come while the process ends
  return gate;
}

void Leave(Gate& gate) {
  std::lock_guard<std::mutex> lock(gate.mutex);
  if (--gate.busy == 0) gate.quiet.notify_all();
}

kiln_error* Error(kiln_code code, std::string_view message) {
  return kiln_error_create(code, message.data(), message.size());
}

kiln_error* Call(void*, const kiln_custom_call* call) {
  Gate& gate = TheGate();
  PythonCallback function = nullptr;
  {
    std::lock_guard<std::mutex> lock(gate.mutex);
    function = gate.function;
    if (function != nullptr) ++gate.busy;
  }
  if (function == nullptr) {
    return Error(KILN_UNAVAILABLE, "Python has ended, or has not provided its callbacks");
  }
  kiln_error* error = nullptr;
  const bool done = function(call, &error) == 1;
  Leave(gate);
  if (done || error != nullptr) return error;
  return Error(KILN_INTERNAL, "the Python callback failed, and its error was lost");
}

}  // namespace

kiln_error* RegisterPythonCallback(kiln_context* context) {
  return kiln_context_register_call(context, kPythonCallback.data(), kPythonCallback.size(), Call,
                                    nullptr, nullptr);
}

PythonExecution::PythonExecution() {
  std::lock_guard<std::mutex> lock(TheGate().mutex);
  ++TheGate().executions;
}

PythonExecution::~PythonExecution() {
  std::lock_guard<std::mutex> lock(TheGate().mutex);
  --TheGate().executions;
}

void ReleaseContext(kiln_context* context) {
  Gate& gate = TheGate();
  {
    std::lock_guard<std::mutex> lock(gate.mutex);
    if (gate.executions > 0 && gate.function != nullptr) {
      try {
        std::thread([context, &gate] {
          kiln_context_release(context);
          Leave(gate);
        }).detach();
        ++gate.busy;
        return;
      } catch (...) {
        // Without a thread it stays: a leak rather than a deadlock.
        return;
      }
    }
  }
  kiln_context_release(context);
}

}  // namespace kiln_jax

void KilnPjrtSetPythonCallback(kiln_jax::PythonCallback function) {
  kiln_jax::Gate& gate = kiln_jax::TheGate();
  std::unique_lock<std::mutex> lock(gate.mutex);
  gate.function = function;
  if (function == nullptr) gate.quiet.wait(lock, [&] { return gate.busy == 0; });
}

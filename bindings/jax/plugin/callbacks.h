/** @file
 *  Calls of programs into Python: a custom call, whose function the Python package provides. */
#ifndef KILN_JAX_PLUGIN_CALLBACKS_H_
#define KILN_JAX_PLUGIN_CALLBACKS_H_

#include <cstdint>
#include <string_view>

#include "kiln/context.h"
#include "kiln/custom_call.h"
#include "kiln/error.h"

namespace kiln_jax {

/** The target of the custom calls. Their `backend_config` tells the package which callable to call;
 *  the plugin does not read it. */
inline constexpr std::string_view kPythonCallback = "kiln_python_callback";

/** The package's function, which takes Python's global lock itself. It fills the results of `call`
 *  and returns 1. Otherwise it returns 0, with an error for the caller, or NULL where even that
 *  could not be made. Any thread. */
using PythonCallback = int32_t (*)(const kiln_custom_call* call, kiln_error** error);

/** Makes the calls known to the programs of a context. */
kiln_error* RegisterPythonCallback(kiln_context* context);

/** The duration of an execution that may call into Python. It may be ended on any thread. */
class PythonExecution {
 public:
  PythonExecution();
  ~PythonExecution();
  PythonExecution(const PythonExecution&) = delete;
  PythonExecution& operator=(const PythonExecution&) = delete;
};

/** Releases the context. Its end waits for its executions, and the caller may have the lock that
 *  these wait for: while there are such, another thread does it. */
void ReleaseContext(kiln_context* context);

}  // namespace kiln_jax

/** Sets the package's function. With NULL calls fail from now on, and it returns when those that
 *  are going on have ended; the caller must not have Python's global lock then. Any thread. */
extern "C" __attribute__((visibility("default"))) void KilnPjrtSetPythonCallback(
    kiln_jax::PythonCallback function);

#endif  // KILN_JAX_PLUGIN_CALLBACKS_H_

/** @file
 *  The targets of foreign calls that programs of the process have registered. */
#ifndef KILN_JAX_PLUGIN_FFI_TARGETS_H_
#define KILN_JAX_PLUGIN_FFI_TARGETS_H_

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "kiln/context.h"
#include "kiln/error.h"

namespace kiln_jax {

/** What a context knows of the targets. */
struct KnownTargets {
  std::mutex mutex;
  size_t count = 0;
};

/** Makes the targets registered so far callable by programs of a context. Any thread. */
kiln_error* AddFfiTargets(kiln_context* context, KnownTargets* known);

}  // namespace kiln_jax

/** Registers a target for programs compiled afterwards.
 *  @param name ends with a 0
 *  @param handlers four functions, of the stages instantiate, prepare, initialize and execute; NULL
 *         where there is none, except the last
 *  @param api_version 1 for handlers of XLA's typed interface, 0 for others
 *  @param message receives the text of an error, cut off at `size` bytes
 *  @return 0, or the code of an error. Any thread. */
extern "C" __attribute__((visibility("default"))) int32_t KilnPjrtRegisterFfiTarget(
    const char* name, void* const* handlers, int32_t api_version, char* message, size_t size);

/** Registers a type: `id` is an XLA_FFI_TypeId, and `info` an XLA_FFI_TypeInfo or NULL. The rest as
 *  above. */
extern "C" __attribute__((visibility("default"))) int32_t KilnPjrtRegisterFfiType(
    const char* name, void* id, const void* info, char* message, size_t size);

#endif  // KILN_JAX_PLUGIN_FFI_TARGETS_H_

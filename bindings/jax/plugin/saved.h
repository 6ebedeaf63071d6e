/** @file
 *  Executables as bytes. */
#ifndef KILN_JAX_PLUGIN_SAVED_H_
#define KILN_JAX_PLUGIN_SAVED_H_

#include "plugin/api/client.h"
#include "plugin/api/executable.h"
#include "plugin/error.h"

namespace kiln_jax {

// The overriding options came later.
template <>
inline constexpr size_t kOldestSize<PJRT_Executable_DeserializeAndLoad_Args> =
    offsetof(PJRT_Executable_DeserializeAndLoad_Args, overridden_serialized_compile_options);

PJRT_Error* ExecutableSerialize(PJRT_Executable_Serialize_Args* args);
PJRT_Error* ExecutableDeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args* args);
PJRT_Error* ExecutableCompileOptions(PJRT_Executable_GetCompileOptions_Args* args);
PJRT_Error* ExecutableOptimizedProgram(PJRT_Executable_OptimizedProgram_Args* args);

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_SAVED_H_

/** @file
 *  The functions that tell of executables; see program.h for the objects. */
#ifndef KILN_JAX_PLUGIN_EXECUTABLE_H_
#define KILN_JAX_PLUGIN_EXECUTABLE_H_

#include "plugin/api/executable.h"
#include "plugin/error.h"

namespace kiln_jax {

// The peak and the total came later.
template <>
inline constexpr size_t kOldestSize<PJRT_Executable_GetCompiledMemoryStats_Args> =
    offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, peak_memory_in_bytes);

PJRT_Error* ExecutableDestroy(PJRT_Executable_Destroy_Args* args);
PJRT_Error* ExecutableName(PJRT_Executable_Name_Args* args);
PJRT_Error* ExecutableNumReplicas(PJRT_Executable_NumReplicas_Args* args);
PJRT_Error* ExecutableNumPartitions(PJRT_Executable_NumPartitions_Args* args);
PJRT_Error* ExecutableNumOutputs(PJRT_Executable_NumOutputs_Args* args);
PJRT_Error* ExecutableCodeSize(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args* args);
PJRT_Error* ExecutableCost(PJRT_Executable_GetCostAnalysis_Args* args);
PJRT_Error* ExecutableOutputMemoryKinds(PJRT_Executable_OutputMemoryKinds_Args* args);
PJRT_Error* ExecutableParameterMemoryKinds(PJRT_Executable_ParameterMemoryKinds_Args* args);
PJRT_Error* ExecutableOutputTypes(PJRT_Executable_OutputElementTypes_Args* args);
PJRT_Error* ExecutableOutputDimensions(PJRT_Executable_OutputDimensions_Args* args);
PJRT_Error* ExecutableFingerprint(PJRT_Executable_Fingerprint_Args* args);
PJRT_Error* ExecutableMemoryStats(PJRT_Executable_GetCompiledMemoryStats_Args* args);
PJRT_Error* LoadedDestroy(PJRT_LoadedExecutable_Destroy_Args* args);
PJRT_Error* LoadedGetExecutable(PJRT_LoadedExecutable_GetExecutable_Args* args);
PJRT_Error* LoadedAddressableDevices(PJRT_LoadedExecutable_AddressableDevices_Args* args);
PJRT_Error* LoadedLogicalIds(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args* args);
PJRT_Error* LoadedDeviceAssignment(PJRT_LoadedExecutable_GetDeviceAssignment_Args* args);
PJRT_Error* LoadedDelete(PJRT_LoadedExecutable_Delete_Args* args);
PJRT_Error* LoadedIsDeleted(PJRT_LoadedExecutable_IsDeleted_Args* args);
PJRT_Error* LoadedFingerprint(PJRT_LoadedExecutable_Fingerprint_Args* args);

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_EXECUTABLE_H_

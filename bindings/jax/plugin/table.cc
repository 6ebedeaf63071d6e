// The table that GetPjrtApi() hands out.
#include "plugin/api/table.h"

#include "plugin/async.h"
#include "plugin/buffer.h"
#include "plugin/client.h"
#include "plugin/device.h"
#include "plugin/error.h"
#include "plugin/event.h"
#include "plugin/executable.h"
#include "plugin/layout.h"
#include "plugin/program.h"
#include "plugin/saved.h"
#include "plugin/topology.h"

namespace kiln_jax {
namespace {

/** The version of the declarations in plugin/api. */
constexpr int kMajor = 0, kMinor = 112;

enum Function {
#define KILN_JAX_NUMBER(name) k##name,
  KILN_JAX_PJRT_FUNCTIONS(KILN_JAX_NUMBER)
#undef KILN_JAX_NUMBER
};

constexpr const char* kNames[] = {
#define KILN_JAX_NAME(name) #name,
    KILN_JAX_PJRT_FUNCTIONS(KILN_JAX_NAME)
#undef KILN_JAX_NAME
};

/** What the table has for functions that are not done. */
template <Function function, typename Args>
PJRT_Error* Unimplemented(Args*) {
  try {
    return UnimplementedError(std::string(kNames[function]) +
                              " is not implemented by Kiln's plugin");
  } catch (...) {
    return OutOfMemory();
  }
}

#define KILN_JAX_SET(name, function) api->PJRT_##name = &Entry<PJRT_##name##_Args, function>

void SetBase(PJRT_Api* api) {
  KILN_JAX_SET(Error_GetCode, ErrorGetCode);
  KILN_JAX_SET(Error_ForEachPayload, ErrorForEachPayload);
  KILN_JAX_SET(Plugin_Initialize, PluginInitialize);
  KILN_JAX_SET(Plugin_Attributes, PluginAttributes);
  KILN_JAX_SET(Event_Destroy, EventDestroy);
  KILN_JAX_SET(Event_IsReady, EventIsReady);
  KILN_JAX_SET(Event_Error, EventError);
  KILN_JAX_SET(Event_Await, EventAwait);
  KILN_JAX_SET(Event_OnReady, EventOnReady);
  KILN_JAX_SET(Client_Create, ClientCreate);
  KILN_JAX_SET(Client_Destroy, ClientDestroy);
  KILN_JAX_SET(Client_PlatformName, ClientPlatformName);
  KILN_JAX_SET(Client_ProcessIndex, ClientProcessIndex);
  KILN_JAX_SET(Client_PlatformVersion, ClientPlatformVersion);
  KILN_JAX_SET(Client_Devices, ClientDevices);
  KILN_JAX_SET(Client_AddressableDevices, ClientAddressableDevices);
  KILN_JAX_SET(Client_LookupDevice, ClientLookupDevice);
  KILN_JAX_SET(Client_LookupAddressableDevice, ClientLookupAddressableDevice);
  KILN_JAX_SET(Client_AddressableMemories, ClientAddressableMemories);
  KILN_JAX_SET(Client_DefaultDeviceAssignment, ClientDefaultDeviceAssignment);
  KILN_JAX_SET(Client_TopologyDescription, ClientTopologyDescription);
  KILN_JAX_SET(Client_Compile, ClientCompile);
  KILN_JAX_SET(Client_BufferFromHostBuffer, BufferFromHost);
  KILN_JAX_SET(TopologyDescription_Create, TopologyCreate);
  KILN_JAX_SET(TopologyDescription_Destroy, TopologyDestroy);
  KILN_JAX_SET(TopologyDescription_Serialize, TopologySerialize);
  KILN_JAX_SET(TopologyDescription_Deserialize, TopologyDeserialize);
  KILN_JAX_SET(Compile, TopologyCompile);
  KILN_JAX_SET(TopologyDescription_PlatformName, TopologyPlatformName);
  KILN_JAX_SET(TopologyDescription_PlatformVersion, TopologyPlatformVersion);
  KILN_JAX_SET(TopologyDescription_GetDeviceDescriptions, TopologyDeviceDescriptions);
  KILN_JAX_SET(TopologyDescription_Attributes, TopologyAttributes);
  KILN_JAX_SET(TopologyDescription_Fingerprint, TopologyFingerprint);
}

void SetDevices(PJRT_Api* api) {
  KILN_JAX_SET(DeviceDescription_Id, DeviceDescriptionId);
  KILN_JAX_SET(DeviceDescription_ProcessIndex, DeviceDescriptionProcessIndex);
  KILN_JAX_SET(DeviceDescription_Attributes, DeviceDescriptionAttributes);
  KILN_JAX_SET(DeviceDescription_Kind, DeviceDescriptionKind);
  KILN_JAX_SET(DeviceDescription_DebugString, DeviceDescriptionDebugString);
  KILN_JAX_SET(DeviceDescription_ToString, DeviceDescriptionToString);
  KILN_JAX_SET(Device_GetDescription, DeviceGetDescription);
  KILN_JAX_SET(Device_IsAddressable, DeviceIsAddressable);
  KILN_JAX_SET(Device_LocalHardwareId, DeviceLocalHardwareId);
  KILN_JAX_SET(Device_AddressableMemories, DeviceAddressableMemories);
  KILN_JAX_SET(Device_DefaultMemory, DeviceDefaultMemory);
  KILN_JAX_SET(Device_MemoryStats, DeviceMemoryStats);
  KILN_JAX_SET(Device_CreateAsyncTrackingEvent, DeviceCreateAsyncTrackingEvent);
  KILN_JAX_SET(AsyncTrackingEvent_Destroy, AsyncTrackingEventDestroy);
  KILN_JAX_SET(Device_GetAttributes, DeviceGetAttributes);
  KILN_JAX_SET(Memory_Id, MemoryId);
  KILN_JAX_SET(Memory_Kind, MemoryKind);
  KILN_JAX_SET(Memory_Kind_Id, MemoryKindId);
  KILN_JAX_SET(Memory_DebugString, MemoryDebugString);
  KILN_JAX_SET(Memory_ToString, MemoryToString);
  KILN_JAX_SET(Memory_AddressableByDevices, MemoryAddressableByDevices);
}

void SetExecutables(PJRT_Api* api) {
  KILN_JAX_SET(Executable_Destroy, ExecutableDestroy);
  KILN_JAX_SET(Executable_Name, ExecutableName);
  KILN_JAX_SET(Executable_NumReplicas, ExecutableNumReplicas);
  KILN_JAX_SET(Executable_NumPartitions, ExecutableNumPartitions);
  KILN_JAX_SET(Executable_NumOutputs, ExecutableNumOutputs);
  KILN_JAX_SET(Executable_SizeOfGeneratedCodeInBytes, ExecutableCodeSize);
  KILN_JAX_SET(Executable_GetCostAnalysis, ExecutableCost);
  KILN_JAX_SET(Executable_OutputMemoryKinds, ExecutableOutputMemoryKinds);
  KILN_JAX_SET(Executable_ParameterMemoryKinds, ExecutableParameterMemoryKinds);
  KILN_JAX_SET(Executable_OutputElementTypes, ExecutableOutputTypes);
  KILN_JAX_SET(Executable_OutputDimensions, ExecutableOutputDimensions);
  KILN_JAX_SET(Executable_Fingerprint, ExecutableFingerprint);
  KILN_JAX_SET(Executable_Serialize, ExecutableSerialize);
  KILN_JAX_SET(Executable_DeserializeAndLoad, ExecutableDeserializeAndLoad);
  KILN_JAX_SET(Executable_GetCompileOptions, ExecutableCompileOptions);
  KILN_JAX_SET(Executable_OptimizedProgram, ExecutableOptimizedProgram);
  KILN_JAX_SET(Executable_GetCompiledMemoryStats, ExecutableMemoryStats);
  KILN_JAX_SET(LoadedExecutable_Destroy, LoadedDestroy);
  KILN_JAX_SET(LoadedExecutable_GetExecutable, LoadedGetExecutable);
  KILN_JAX_SET(LoadedExecutable_AddressableDevices, LoadedAddressableDevices);
  KILN_JAX_SET(LoadedExecutable_AddressableDeviceLogicalIds, LoadedLogicalIds);
  KILN_JAX_SET(LoadedExecutable_GetDeviceAssignment, LoadedDeviceAssignment);
  KILN_JAX_SET(LoadedExecutable_Delete, LoadedDelete);
  KILN_JAX_SET(LoadedExecutable_IsDeleted, LoadedIsDeleted);
  KILN_JAX_SET(LoadedExecutable_Fingerprint, LoadedFingerprint);
  KILN_JAX_SET(LoadedExecutable_Execute, LoadedExecute);
}

void SetBuffers(PJRT_Api* api) {
  KILN_JAX_SET(Client_CreateViewOfDeviceBuffer, BufferView);
  KILN_JAX_SET(Buffer_Destroy, BufferDestroy);
  KILN_JAX_SET(Buffer_ElementType, BufferElementType);
  KILN_JAX_SET(Buffer_Dimensions, BufferDimensions);
  KILN_JAX_SET(Buffer_UnpaddedDimensions, BufferUnpaddedDimensions);
  KILN_JAX_SET(Buffer_DynamicDimensionIndices, BufferDynamicDimensionIndices);
  KILN_JAX_SET(Buffer_GetMemoryLayout, BufferGetMemoryLayout);
  KILN_JAX_SET(Buffer_OnDeviceSizeInBytes, BufferOnDeviceSizeInBytes);
  KILN_JAX_SET(Buffer_Device, BufferDevice);
  KILN_JAX_SET(Buffer_Memory, BufferMemory);
  KILN_JAX_SET(Buffer_Delete, BufferDelete);
  KILN_JAX_SET(Buffer_IsDeleted, BufferIsDeleted);
  KILN_JAX_SET(Buffer_CopyToDevice, BufferCopyToDevice);
  KILN_JAX_SET(Buffer_CopyToMemory, BufferCopyToMemory);
  KILN_JAX_SET(Buffer_ToHostBuffer, BufferToHost);
  KILN_JAX_SET(Buffer_IsOnCpu, BufferIsOnCpu);
  KILN_JAX_SET(Buffer_ReadyEvent, BufferReadyEvent);
  KILN_JAX_SET(Buffer_UnsafePointer, BufferUnsafePointer);
  KILN_JAX_SET(Buffer_IncreaseExternalReferenceCount, BufferIncreaseReferences);
  KILN_JAX_SET(Buffer_DecreaseExternalReferenceCount, BufferDecreaseReferences);
  KILN_JAX_SET(Buffer_OpaqueDeviceMemoryDataPointer, BufferDataPointer);
}

#define KILN_JAX_SET_MANAGER(name, function) \
  KILN_JAX_SET(AsyncHostToDeviceTransferManager_##name, TransferManager##function)

void SetAsync(PJRT_Api* api) {
  KILN_JAX_SET(Event_Create, EventCreate);
  KILN_JAX_SET(Event_Set, EventSet);
  KILN_JAX_SET(Client_CreateUninitializedBuffer, UninitializedBuffer);
  KILN_JAX_SET(Client_CreateErrorBuffer, ErrorBuffer);
  KILN_JAX_SET(Client_CreateAliasBuffer, AliasBuffer);
  KILN_JAX_SET(Client_FulfillAliasBuffer, FulfillAliasBuffer);
  KILN_JAX_SET(Buffer_CopyRawToHost, BufferRawToHost);
  KILN_JAX_SET(Buffer_CopyRawToHostFuture, BufferRawToHostFuture);
  KILN_JAX_SET(Buffer_DonateWithControlDependency, BufferDonateWithDependency);
  KILN_JAX_SET(Client_CreateBuffersForAsyncHostToDevice, TransferManagerCreate);
  KILN_JAX_SET_MANAGER(Destroy, Destroy);
  KILN_JAX_SET_MANAGER(TransferData, Data);
  KILN_JAX_SET_MANAGER(TransferLiteral, Literal);
  KILN_JAX_SET_MANAGER(RetrieveBuffer, Retrieve);
  KILN_JAX_SET_MANAGER(Device, Device);
  KILN_JAX_SET_MANAGER(BufferCount, Count);
  KILN_JAX_SET_MANAGER(BufferSize, Size);
  KILN_JAX_SET_MANAGER(SetBufferError, Error);
  KILN_JAX_SET_MANAGER(AddMetadata, Metadata);
}

#undef KILN_JAX_SET_MANAGER
#undef KILN_JAX_SET

PJRT_Api MakeTable() {
  PJRT_Api api = {};
  api.struct_size = sizeof(PJRT_Api);
  api.extension_start = Extensions();
  api.pjrt_api_version.struct_size = sizeof(PJRT_Api_Version);
  api.pjrt_api_version.major_version = kMajor;
  api.pjrt_api_version.minor_version = kMinor;
  api.PJRT_Error_Destroy = &ErrorDestroy;
  api.PJRT_Error_Message = &ErrorMessage;
#define KILN_JAX_UNIMPLEMENTED(name) api.name = &Unimplemented<k##name, name##_Args>;
  KILN_JAX_PJRT_FUNCTIONS(KILN_JAX_UNIMPLEMENTED)
#undef KILN_JAX_UNIMPLEMENTED
  SetBase(&api);
  SetDevices(&api);
  SetExecutables(&api);
  SetBuffers(&api);
  SetAsync(&api);
  return api;
}

}  // namespace
}  // namespace kiln_jax

/** The table, which lives as long as the library. Any thread. */
extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi();

const PJRT_Api* GetPjrtApi() {
  static const PJRT_Api api = kiln_jax::MakeTable();
  return &api;
}

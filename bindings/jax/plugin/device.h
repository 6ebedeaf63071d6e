/** @file
 *  The functions on devices, memories and topologies; see client.h for the objects. */
#ifndef KILN_JAX_PLUGIN_DEVICE_H_
#define KILN_JAX_PLUGIN_DEVICE_H_

#include "plugin/api/client.h"
#include "plugin/api/layouts.h"

namespace kiln_jax {

PJRT_Error* DeviceDescriptionId(PJRT_DeviceDescription_Id_Args* args);
PJRT_Error* DeviceDescriptionProcessIndex(PJRT_DeviceDescription_ProcessIndex_Args* args);
PJRT_Error* DeviceDescriptionAttributes(PJRT_DeviceDescription_Attributes_Args* args);
PJRT_Error* DeviceDescriptionKind(PJRT_DeviceDescription_Kind_Args* args);
PJRT_Error* DeviceDescriptionDebugString(PJRT_DeviceDescription_DebugString_Args* args);
PJRT_Error* DeviceDescriptionToString(PJRT_DeviceDescription_ToString_Args* args);
PJRT_Error* DeviceDescriptionMemories(PJRT_DeviceDescription_MemoryDescriptions_Args* args);
PJRT_Error* MemoryDescriptionKind(PJRT_MemoryDescription_Kind_Args* args);
PJRT_Error* DeviceGetDescription(PJRT_Device_GetDescription_Args* args);
PJRT_Error* DeviceIsAddressable(PJRT_Device_IsAddressable_Args* args);
PJRT_Error* DeviceLocalHardwareId(PJRT_Device_LocalHardwareId_Args* args);
PJRT_Error* DeviceAddressableMemories(PJRT_Device_AddressableMemories_Args* args);
PJRT_Error* DeviceDefaultMemory(PJRT_Device_DefaultMemory_Args* args);
PJRT_Error* DeviceMemoryStats(PJRT_Device_MemoryStats_Args* args);
PJRT_Error* DeviceGetAttributes(PJRT_Device_GetAttributes_Args* args);
PJRT_Error* DeviceCreateAsyncTrackingEvent(PJRT_Device_CreateAsyncTrackingEvent_Args* args);
PJRT_Error* AsyncTrackingEventDestroy(PJRT_AsyncTrackingEvent_Destroy_Args* args);
PJRT_Error* MemoryId(PJRT_Memory_Id_Args* args);
PJRT_Error* MemoryKind(PJRT_Memory_Kind_Args* args);
PJRT_Error* MemoryKindId(PJRT_Memory_Kind_Id_Args* args);
PJRT_Error* MemoryDebugString(PJRT_Memory_DebugString_Args* args);
PJRT_Error* MemoryToString(PJRT_Memory_ToString_Args* args);
PJRT_Error* MemoryAddressableByDevices(PJRT_Memory_AddressableByDevices_Args* args);
PJRT_Error* TopologyPlatformName(PJRT_TopologyDescription_PlatformName_Args* args);
PJRT_Error* TopologyPlatformVersion(PJRT_TopologyDescription_PlatformVersion_Args* args);
PJRT_Error* TopologyDeviceDescriptions(PJRT_TopologyDescription_GetDeviceDescriptions_Args* args);
PJRT_Error* TopologyAttributes(PJRT_TopologyDescription_Attributes_Args* args);
PJRT_Error* TopologyFingerprint(PJRT_TopologyDescription_Fingerprint_Args* args);

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_DEVICE_H_

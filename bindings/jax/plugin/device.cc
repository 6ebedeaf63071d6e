#include "plugin/device.h"

#include <cstring>
#include <iterator>

#include "plugin/client.h"
#include "plugin/error.h"

/** A kind of memory, of all devices. */
struct PJRT_MemoryDescription {
  int kind_id;
  const char* kind;
};

namespace kiln_jax {

PJRT_Error* DeviceDescriptionId(PJRT_DeviceDescription_Id_Args* args) {
  args->id = args->device_description->id;
  return nullptr;
}

PJRT_Error* DeviceDescriptionProcessIndex(PJRT_DeviceDescription_ProcessIndex_Args* args) {
  args->process_index = 0;
  return nullptr;
}

PJRT_Error* DeviceDescriptionAttributes(PJRT_DeviceDescription_Attributes_Args* args) {
  args->attributes = nullptr;
  args->num_attributes = 0;
  return nullptr;
}

PJRT_Error* DeviceDescriptionKind(PJRT_DeviceDescription_Kind_Args* args) {
  args->device_kind = args->device_description->kind.c_str();
  args->device_kind_size = args->device_description->kind.size();
  return nullptr;
}

PJRT_Error* DeviceDescriptionDebugString(PJRT_DeviceDescription_DebugString_Args* args) {
  args->debug_string = args->device_description->debug_string.c_str();
  args->debug_string_size = args->device_description->debug_string.size();
  return nullptr;
}

PJRT_Error* DeviceDescriptionToString(PJRT_DeviceDescription_ToString_Args* args) {
  args->to_string = args->device_description->to_string.c_str();
  args->to_string_size = args->device_description->to_string.size();
  return nullptr;
}

PJRT_Error* DeviceDescriptionMemories(PJRT_DeviceDescription_MemoryDescriptions_Args* args) {
  static const PJRT_MemoryDescription kinds[] = {
      {0, kMemoryKinds[0]}, {1, kMemoryKinds[1]}, {2, kMemoryKinds[2]}};
  static const PJRT_MemoryDescription* const list[] = {&kinds[0], &kinds[1], &kinds[2]};
  static_assert(std::size(list) == kMemoryKindCount);
  args->memory_descriptions = list;
  args->num_memory_descriptions = kMemoryKindCount;
  args->default_memory_index = 0;
  return nullptr;
}

PJRT_Error* MemoryDescriptionKind(PJRT_MemoryDescription_Kind_Args* args) {
  args->kind = args->memory_description->kind;
  args->kind_size = std::strlen(args->kind);
  args->kind_id = args->memory_description->kind_id;
  return nullptr;
}

PJRT_Error* DeviceGetDescription(PJRT_Device_GetDescription_Args* args) {
  args->device_description = args->device->description;
  return nullptr;
}

PJRT_Error* DeviceIsAddressable(PJRT_Device_IsAddressable_Args* args) {
  args->is_addressable = true;
  return nullptr;
}

PJRT_Error* DeviceLocalHardwareId(PJRT_Device_LocalHardwareId_Args* args) {
  args->local_hardware_id = args->device->description->id;
  return nullptr;
}

PJRT_Error* DeviceAddressableMemories(PJRT_Device_AddressableMemories_Args* args) {
  args->memories = args->device->memories;
  args->num_memories = kMemoryKindCount;
  return nullptr;
}

PJRT_Error* DeviceDefaultMemory(PJRT_Device_DefaultMemory_Args* args) {
  args->memory = args->device->memories[0];
  return nullptr;
}

PJRT_Error* DeviceMemoryStats(PJRT_Device_MemoryStats_Args* args) {
  kiln_memory_info info = KILN_MEMORY_INFO_INIT;
  if (kiln_error* error = kiln_device_memory(args->device->device, &info)) return TakeError(error);
  args->bytes_in_use = info.live_bytes;
  args->peak_bytes_in_use = info.peak_bytes;
  args->peak_bytes_in_use_is_set = true;
  args->bytes_limit = info.limit_bytes;
  args->bytes_limit_is_set = info.limit_bytes != 0;
  args->num_allocs_is_set = false;
  args->largest_alloc_size_is_set = false;
  args->bytes_reserved_is_set = false;
  args->peak_bytes_reserved_is_set = false;
  args->bytes_reservable_limit = info.limit_bytes;
  args->bytes_reservable_limit_is_set = info.limit_bytes != 0;
  args->largest_free_block_bytes_is_set = false;
  args->pool_bytes_is_set = false;
  args->peak_pool_bytes_is_set = false;
  return nullptr;
}

PJRT_Error* DeviceGetAttributes(PJRT_Device_GetAttributes_Args* args) {
  args->attributes = nullptr;
  args->num_attributes = 0;
  args->device_attributes = nullptr;
  args->attributes_deleter = [](PJRT_Device_Attributes*) {};
  return nullptr;
}

PJRT_Error* DeviceCreateAsyncTrackingEvent(PJRT_Device_CreateAsyncTrackingEvent_Args* args) {
  args->event = nullptr;  // nothing is tracked
  return nullptr;
}

PJRT_Error* AsyncTrackingEventDestroy(PJRT_AsyncTrackingEvent_Destroy_Args*) { return nullptr; }

PJRT_Error* MemoryId(PJRT_Memory_Id_Args* args) {
  args->id = args->memory->id;
  return nullptr;
}

PJRT_Error* MemoryKind(PJRT_Memory_Kind_Args* args) {
  args->kind = args->memory->kind;
  args->kind_size = std::strlen(args->memory->kind);
  return nullptr;
}

PJRT_Error* MemoryKindId(PJRT_Memory_Kind_Id_Args* args) {
  args->kind_id = args->memory->kind_id;
  return nullptr;
}

PJRT_Error* MemoryDebugString(PJRT_Memory_DebugString_Args* args) {
  args->debug_string = args->memory->to_string.c_str();
  args->debug_string_size = args->memory->to_string.size();
  return nullptr;
}

PJRT_Error* MemoryToString(PJRT_Memory_ToString_Args* args) {
  args->to_string = args->memory->to_string.c_str();
  args->to_string_size = args->memory->to_string.size();
  return nullptr;
}

PJRT_Error* MemoryAddressableByDevices(PJRT_Memory_AddressableByDevices_Args* args) {
  args->devices = &args->memory->device;
  args->num_devices = 1;
  return nullptr;
}

PJRT_Error* TopologyPlatformName(PJRT_TopologyDescription_PlatformName_Args* args) {
  args->platform_name = args->topology->platform;
  args->platform_name_size = std::strlen(args->platform_name);
  return nullptr;
}

PJRT_Error* TopologyPlatformVersion(PJRT_TopologyDescription_PlatformVersion_Args* args) {
  args->platform_version = args->topology->platform_version.c_str();
  args->platform_version_size = args->topology->platform_version.size();
  return nullptr;
}

PJRT_Error* TopologyDeviceDescriptions(PJRT_TopologyDescription_GetDeviceDescriptions_Args* args) {
  args->descriptions = args->topology->descriptions.data();
  args->num_descriptions = args->topology->descriptions.size();
  return nullptr;
}

PJRT_Error* TopologyAttributes(PJRT_TopologyDescription_Attributes_Args* args) {
  args->attributes = nullptr;
  args->num_attributes = 0;
  return nullptr;
}

PJRT_Error* TopologyFingerprint(PJRT_TopologyDescription_Fingerprint_Args* args) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : args->topology->platform_version) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  args->fingerprint = hash;
  return nullptr;
}

}  // namespace kiln_jax

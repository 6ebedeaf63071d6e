/** @file
 *  Arguments of the functions on clients, devices, memories and topologies. */
#ifndef KILN_JAX_PLUGIN_API_CLIENT_H_
#define KILN_JAX_PLUGIN_API_CLIENT_H_

#include "plugin/api/types.h"

struct PJRT_Client_Create_Args {
  size_t struct_size;
  void* extension_start;
  const PJRT_NamedValue* create_options;
  size_t num_options;
  void* kv_get_callback;
  void* kv_get_user_arg;
  void* kv_put_callback;
  void* kv_put_user_arg;
  PJRT_Client* client;
  void* kv_try_get_callback;
  void* kv_try_get_user_arg;
};

struct PJRT_Client_Destroy_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Client* client;
};

struct PJRT_Client_PlatformName_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Client* client;
  const char* platform_name;
  size_t platform_name_size;
};

struct PJRT_Client_ProcessIndex_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Client* client;
  int process_index;
};

struct PJRT_Client_PlatformVersion_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Client* client;
  const char* platform_version;
  size_t platform_version_size;
};

struct PJRT_Client_TopologyDescription_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Client* client;
  PJRT_TopologyDescription* topology;
};

struct PJRT_Client_Devices_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Client* client;
  PJRT_Device* const* devices;
  size_t num_devices;
};

struct PJRT_Client_AddressableDevices_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Client* client;
  PJRT_Device* const* addressable_devices;
  size_t num_addressable_devices;
};

struct PJRT_Client_LookupDevice_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Client* client;
  int id;
  PJRT_Device* device;
};

struct PJRT_Client_LookupAddressableDevice_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Client* client;
  int local_hardware_id;
  PJRT_Device* addressable_device;
};

struct PJRT_Client_AddressableMemories_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Client* client;
  PJRT_Memory* const* addressable_memories;
  size_t num_addressable_memories;
};

struct PJRT_Client_DefaultDeviceAssignment_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Client* client;
  int num_replicas;
  int num_partitions;
  size_t default_assignment_size;
  int* default_assignment;
};

struct PJRT_DeviceDescription_Id_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_DeviceDescription* device_description;
  int id;
};

struct PJRT_DeviceDescription_ProcessIndex_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_DeviceDescription* device_description;
  int process_index;
};

struct PJRT_DeviceDescription_Attributes_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_DeviceDescription* device_description;
  size_t num_attributes;
  const PJRT_NamedValue* attributes;
};

struct PJRT_DeviceDescription_Kind_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_DeviceDescription* device_description;
  const char* device_kind;
  size_t device_kind_size;
};

struct PJRT_DeviceDescription_DebugString_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_DeviceDescription* device_description;
  const char* debug_string;
  size_t debug_string_size;
};

struct PJRT_DeviceDescription_ToString_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_DeviceDescription* device_description;
  const char* to_string;
  size_t to_string_size;
};

struct PJRT_Device_GetDescription_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Device* device;
  PJRT_DeviceDescription* device_description;
};

struct PJRT_Device_IsAddressable_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Device* device;
  bool is_addressable;
};

struct PJRT_Device_LocalHardwareId_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Device* device;
  int local_hardware_id;
};

struct PJRT_Device_AddressableMemories_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Device* device;
  PJRT_Memory* const* memories;
  size_t num_memories;
};

struct PJRT_Device_DefaultMemory_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Device* device;
  PJRT_Memory* memory;
};

struct PJRT_Device_MemoryStats_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Device* device;
  int64_t bytes_in_use;
  int64_t peak_bytes_in_use;
  bool peak_bytes_in_use_is_set;
  int64_t num_allocs;
  bool num_allocs_is_set;
  int64_t largest_alloc_size;
  bool largest_alloc_size_is_set;
  int64_t bytes_limit;
  bool bytes_limit_is_set;
  int64_t bytes_reserved;
  bool bytes_reserved_is_set;
  int64_t peak_bytes_reserved;
  bool peak_bytes_reserved_is_set;
  int64_t bytes_reservable_limit;
  bool bytes_reservable_limit_is_set;
  int64_t largest_free_block_bytes;
  bool largest_free_block_bytes_is_set;
  int64_t pool_bytes;
  bool pool_bytes_is_set;
  int64_t peak_pool_bytes;
  bool peak_pool_bytes_is_set;
};

struct PJRT_Device_CreateAsyncTrackingEvent_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Device* device;
  const char* description;
  size_t description_size;
  PJRT_AsyncTrackingEvent* event;
};

struct PJRT_AsyncTrackingEvent_Destroy_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_AsyncTrackingEvent* event;
};

struct PJRT_Device_GetAttributes_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Device* device;
  const PJRT_NamedValue* attributes;
  size_t num_attributes;
  PJRT_Device_Attributes* device_attributes;
  void (*attributes_deleter)(PJRT_Device_Attributes* holder);
};

struct PJRT_Memory_Id_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Memory* memory;
  int id;
};

struct PJRT_Memory_Kind_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Memory* memory;
  const char* kind;
  size_t kind_size;
};

struct PJRT_Memory_Kind_Id_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Memory* memory;
  int kind_id;
};

struct PJRT_Memory_DebugString_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Memory* memory;
  const char* debug_string;
  size_t debug_string_size;
};

struct PJRT_Memory_ToString_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Memory* memory;
  const char* to_string;
  size_t to_string_size;
};

struct PJRT_Memory_AddressableByDevices_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Memory* memory;
  PJRT_Device* const* devices;
  size_t num_devices;
};

struct PJRT_TopologyDescription_Create_Args {
  size_t struct_size;
  void* extension_start;
  const char* topology_name;
  size_t topology_name_size;
  const PJRT_NamedValue* create_options;
  size_t num_options;
  PJRT_TopologyDescription* topology;
};

struct PJRT_TopologyDescription_Destroy_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_TopologyDescription* topology;
};

struct PJRT_TopologyDescription_PlatformName_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_TopologyDescription* topology;
  const char* platform_name;
  size_t platform_name_size;
};

struct PJRT_TopologyDescription_PlatformVersion_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_TopologyDescription* topology;
  const char* platform_version;
  size_t platform_version_size;
};

struct PJRT_TopologyDescription_GetDeviceDescriptions_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_TopologyDescription* topology;
  PJRT_DeviceDescription* const* descriptions;
  size_t num_descriptions;
};

struct PJRT_TopologyDescription_Attributes_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_TopologyDescription* topology;
  const PJRT_NamedValue* attributes;
  size_t num_attributes;
};

/** What holds serialised bytes until their deleter is called. */
struct PJRT_SerializedTopology;

struct PJRT_TopologyDescription_Serialize_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_TopologyDescription* topology;
  const char* serialized_bytes;
  size_t serialized_bytes_size;
  PJRT_SerializedTopology* serialized_topology;
  void (*serialized_topology_deleter)(PJRT_SerializedTopology* holder);
};

struct PJRT_TopologyDescription_Deserialize_Args {
  size_t struct_size;
  void* extension_start;
  const char* serialized_topology;
  size_t serialized_topology_size;
  PJRT_TopologyDescription* topology;
};

struct PJRT_TopologyDescription_Fingerprint_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_TopologyDescription* topology;
  uint64_t fingerprint;
};

#endif  // KILN_JAX_PLUGIN_API_CLIENT_H_

/** @file
 *  Arguments of the functions on programs and executables. */
#ifndef KILN_JAX_PLUGIN_API_EXECUTABLE_H_
#define KILN_JAX_PLUGIN_API_EXECUTABLE_H_

#include "plugin/api/types.h"

/** A program as text or bytes; `format` is "mlir" or "hlo". */
struct PJRT_Program {
  size_t struct_size;
  void* extension_start;
  const char* code;
  size_t code_size;
  const char* format;
  size_t format_size;
};

/** The place of a device in the assignment of an executable. */
struct PJRT_LogicalDeviceIds {
  int replica;
  int partition;
};

/** The options of one execution. Later versions have more members at the end. */
struct PJRT_ExecuteOptions {
  size_t struct_size;
  void* extension_start;
  void* send_callbacks;
  void* recv_callbacks;
  size_t num_send_ops;
  size_t num_recv_ops;
  int launch_id;
  const int64_t* non_donatable_input_indices;
  size_t num_non_donatable_input_indices;
  PJRT_ExecuteContext* context;
  const char* call_location;
};

struct PJRT_Client_Compile_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Client* client;
  const PJRT_Program* program;
  const char* compile_options;
  size_t compile_options_size;
  PJRT_LoadedExecutable* executable;
};

struct PJRT_Executable_Destroy_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
};

struct PJRT_Executable_Name_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
  const char* executable_name;
  size_t executable_name_size;
};

struct PJRT_Executable_NumReplicas_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
  size_t num_replicas;
};

struct PJRT_Executable_NumPartitions_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
  size_t num_partitions;
};

struct PJRT_Executable_NumOutputs_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
  size_t num_outputs;
};

struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
  int64_t size_in_bytes;
};

struct PJRT_Executable_GetCostAnalysis_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
  size_t num_properties;
  const PJRT_NamedValue* properties;
};

struct PJRT_Executable_OutputMemoryKinds_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
  size_t num_outputs;
  const char* const* memory_kinds;
  const size_t* memory_kind_sizes;
};

struct PJRT_Executable_ParameterMemoryKinds_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
  size_t num_parameters;
  const char* const* memory_kinds;
  const size_t* memory_kind_sizes;
};

struct PJRT_Executable_OutputElementTypes_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
  const PJRT_Buffer_Type* output_types;
  size_t num_output_types;
};

struct PJRT_Executable_OutputDimensions_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
  size_t num_outputs;
  const int64_t* dims;
  const size_t* dim_sizes;
};

struct PJRT_Executable_Fingerprint_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
  const char* executable_fingerprint;
  size_t executable_fingerprint_size;
};

struct PJRT_Executable_GetCompiledMemoryStats_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
  int64_t generated_code_size_in_bytes;
  int64_t argument_size_in_bytes;
  int64_t output_size_in_bytes;
  int64_t alias_size_in_bytes;
  int64_t temp_size_in_bytes;
  int64_t host_generated_code_size_in_bytes;
  int64_t host_argument_size_in_bytes;
  int64_t host_output_size_in_bytes;
  int64_t host_alias_size_in_bytes;
  int64_t host_temp_size_in_bytes;
  int64_t peak_memory_in_bytes;
  int64_t total_size_in_bytes;
};

struct PJRT_Executable_OptimizedProgram_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
  PJRT_Program* program;  // without `code` to ask for the size
};

/** What holds serialised bytes until their deleter is called. */
struct PJRT_SerializedExecutable;
struct PJRT_SerializedCompileOptions;

struct PJRT_Executable_Serialize_Args {
  size_t struct_size;
  void* extension_start;
  const PJRT_Executable* executable;
  const char* serialized_bytes;
  size_t serialized_bytes_size;
  PJRT_SerializedExecutable* serialized_executable;
  void (*serialized_executable_deleter)(PJRT_SerializedExecutable* holder);
};

struct PJRT_Executable_GetCompileOptions_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
  const char* serialized_bytes;
  size_t serialized_bytes_size;
  PJRT_SerializedCompileOptions* serialized_compile_options;
  void (*serialized_compile_options_deleter)(PJRT_SerializedCompileOptions* holder);
};

struct PJRT_Executable_DeserializeAndLoad_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Client* client;
  const char* serialized_executable;
  size_t serialized_executable_size;
  PJRT_LoadedExecutable* loaded_executable;
  const char* overridden_serialized_compile_options;  // or NULL: those of the executable
  size_t overridden_serialized_compile_options_size;
};

struct PJRT_Compile_Args {
  size_t struct_size;
  void* extension_start;
  const PJRT_TopologyDescription* topology;
  const PJRT_Program* program;
  const char* compile_options;
  size_t compile_options_size;
  PJRT_Client* client;
  PJRT_Executable* executable;
};

struct PJRT_LoadedExecutable_Destroy_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_LoadedExecutable* executable;
};

struct PJRT_LoadedExecutable_GetExecutable_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_LoadedExecutable* loaded_executable;
  PJRT_Executable* executable;
};

struct PJRT_LoadedExecutable_AddressableDevices_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_LoadedExecutable* executable;
  PJRT_Device* const* addressable_devices;
  size_t num_addressable_devices;
};

struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_LoadedExecutable* executable;
  const PJRT_LogicalDeviceIds* addressable_device_logical_ids;
  size_t num_addressable_device_logical_ids;
};

struct PJRT_LoadedExecutable_GetDeviceAssignment_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_LoadedExecutable* executable;
  const char* serialized_bytes;
  size_t serialized_bytes_size;
  PJRT_DeviceAssignmentSerialized* serialized_device_assignment;
  void (*serialized_device_assignment_deleter)(PJRT_DeviceAssignmentSerialized* holder);
};

struct PJRT_LoadedExecutable_Delete_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_LoadedExecutable* executable;
};

struct PJRT_LoadedExecutable_IsDeleted_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_LoadedExecutable* executable;
  bool is_deleted;
};

struct PJRT_LoadedExecutable_Fingerprint_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_LoadedExecutable* executable;
  const char* executable_fingerprint;
  size_t executable_fingerprint_size;
};

struct PJRT_LoadedExecutable_Execute_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_LoadedExecutable* executable;
  PJRT_ExecuteOptions* options;
  PJRT_Buffer* const* const* argument_lists;
  size_t num_devices;
  size_t num_args;
  PJRT_Buffer** const* output_lists;
  PJRT_Event** device_complete_events;
  PJRT_Device* execute_device;
};

#endif  // KILN_JAX_PLUGIN_API_EXECUTABLE_H_

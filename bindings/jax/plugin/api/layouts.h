/** @file
 *  Extensions of the table: orders of elements in memory, kinds of memory of devices that need not
 *  be there, and shardings of executables. */
#ifndef KILN_JAX_PLUGIN_API_LAYOUTS_H_
#define KILN_JAX_PLUGIN_API_LAYOUTS_H_

#include "plugin/api/types.h"

struct PJRT_Layouts_MemoryLayout;
struct PJRT_Layouts_SerializedLayout;
struct PJRT_MemoryDescription;

enum PJRT_Extension_Type : uint32_t {
  PJRT_Extension_Type_Profiler = 1,
  PJRT_Extension_Type_Layouts = 4,
  PJRT_Extension_Type_MemoryDescriptions = 6,
  PJRT_Extension_Type_Shardings = 19,
};

/** The head of an extension; the table has a list of them. */
struct PJRT_Extension_Base {
  size_t struct_size;
  PJRT_Extension_Type type;
  PJRT_Extension_Base* next;
};

struct PJRT_Layouts_MemoryLayout_Destroy_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Layouts_MemoryLayout* layout;
};

struct PJRT_Layouts_MemoryLayout_Serialize_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Layouts_MemoryLayout* layout;
  const char* serialized_bytes;
  size_t serialized_bytes_size;
  PJRT_Layouts_SerializedLayout* serialized_layout;
  void (*serialized_layout_deleter)(PJRT_Layouts_SerializedLayout* holder);
};

struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Client* client;
  PJRT_Buffer_Type type;
  const int64_t* dims;
  size_t num_dims;
  PJRT_Layouts_MemoryLayout* layout;
};

struct PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Layouts_MemoryLayout* layout;
};

struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_TopologyDescription* topology_description;
  PJRT_Buffer_Type type;
  const int64_t* dims;
  size_t num_dims;
  PJRT_Layouts_MemoryLayout* layout;
};

struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
  size_t num_outputs;
  PJRT_Layouts_MemoryLayout** layouts;
};

struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
  size_t num_parameters;
  PJRT_Layouts_MemoryLayout** layouts;
};

struct PJRT_Layouts_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*destroy)(PJRT_Layouts_MemoryLayout_Destroy_Args* args);
  PJRT_Error* (*serialize)(PJRT_Layouts_MemoryLayout_Serialize_Args* args);
  PJRT_Error* (*client_default)(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args* args);
  PJRT_Error* (*buffer)(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args* args);
  PJRT_Error* (*topology_default)(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args* args);
  PJRT_Error* (*outputs)(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args* args);
  PJRT_Error* (*parameters)(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args* args);
};

struct PJRT_DeviceDescription_MemoryDescriptions_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_DeviceDescription* device_description;
  const PJRT_MemoryDescription* const* memory_descriptions;
  size_t num_memory_descriptions;
  size_t default_memory_index;
};

struct PJRT_MemoryDescription_Kind_Args {
  size_t struct_size;
  void* extension_start;
  const PJRT_MemoryDescription* memory_description;
  const char* kind;
  size_t kind_size;
  int kind_id;
};

struct PJRT_MemoryDescriptions_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*memories)(PJRT_DeviceDescription_MemoryDescriptions_Args* args);
  PJRT_Error* (*kind)(PJRT_MemoryDescription_Kind_Args* args);
};

struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
  size_t num_parameters;
  const char* const* shardings;
  const size_t* sharding_sizes;
};

struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Executable* executable;
  size_t num_outputs;
  const char* const* shardings;
  const size_t* sharding_sizes;
};

struct PJRT_Shardings_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*parameters)(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args* args);
  PJRT_Error* (*outputs)(PJRT_Shardings_PJRT_Executable_OutputShardings_Args* args);
};

#endif  // KILN_JAX_PLUGIN_API_LAYOUTS_H_

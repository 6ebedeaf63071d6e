/** @file
 *  Types of the PJRT C API (version 0.112) that several functions share: names, order and
 *  layout are those that every caller compiles in. */
#ifndef KILN_JAX_PLUGIN_API_TYPES_H_
#define KILN_JAX_PLUGIN_API_TYPES_H_

#include <cstddef>
#include <cstdint>

struct PJRT_AsyncTrackingEvent;
struct PJRT_Buffer;
struct PJRT_Client;
struct PJRT_Device;
struct PJRT_Device_Attributes;
struct PJRT_DeviceAssignmentSerialized;
struct PJRT_DeviceDescription;
struct PJRT_Error;
struct PJRT_Event;
struct PJRT_ExecuteContext;
struct PJRT_Executable;
struct PJRT_LoadedExecutable;
struct PJRT_Memory;
struct PJRT_TopologyDescription;

/** Canonical codes of errors, the numbers of ::kiln_code. */
enum PJRT_Error_Code : uint32_t {
  PJRT_Error_Code_OK = 0,
  PJRT_Error_Code_CANCELLED = 1,
  PJRT_Error_Code_INVALID_ARGUMENT = 3,
  PJRT_Error_Code_NOT_FOUND = 5,
  PJRT_Error_Code_RESOURCE_EXHAUSTED = 8,
  PJRT_Error_Code_FAILED_PRECONDITION = 9,
  PJRT_Error_Code_OUT_OF_RANGE = 11,
  PJRT_Error_Code_UNIMPLEMENTED = 12,
  PJRT_Error_Code_INTERNAL = 13,
};

/** Element types. Their numbers are PJRT's own, not PrimitiveType's. */
enum PJRT_Buffer_Type : uint32_t {
  PJRT_Buffer_Type_INVALID,
  PJRT_Buffer_Type_PRED,
  PJRT_Buffer_Type_S8,
  PJRT_Buffer_Type_S16,
  PJRT_Buffer_Type_S32,
  PJRT_Buffer_Type_S64,
  PJRT_Buffer_Type_U8,
  PJRT_Buffer_Type_U16,
  PJRT_Buffer_Type_U32,
  PJRT_Buffer_Type_U64,
  PJRT_Buffer_Type_F16,
  PJRT_Buffer_Type_F32,
  PJRT_Buffer_Type_F64,
  PJRT_Buffer_Type_BF16,
  PJRT_Buffer_Type_C64,
  PJRT_Buffer_Type_C128,
  PJRT_Buffer_Type_F8E5M2,
  PJRT_Buffer_Type_F8E4M3FN,
  PJRT_Buffer_Type_F8E4M3B11FNUZ,
  PJRT_Buffer_Type_F8E5M2FNUZ,
  PJRT_Buffer_Type_F8E4M3FNUZ,
  PJRT_Buffer_Type_S4,
  PJRT_Buffer_Type_U4,
  PJRT_Buffer_Type_TOKEN,
  PJRT_Buffer_Type_S2,
  PJRT_Buffer_Type_U2,
  PJRT_Buffer_Type_F8E4M3,
  PJRT_Buffer_Type_F8E3M4,
  PJRT_Buffer_Type_F8E8M0FNU,
  PJRT_Buffer_Type_F4E2M1FN,
};

/** How long the caller's memory stays unchanged. */
enum PJRT_HostBufferSemantics : uint32_t {
  PJRT_HostBufferSemantics_kImmutableOnlyDuringCall,
  PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes,
  PJRT_HostBufferSemantics_kImmutableZeroCopy,
  PJRT_HostBufferSemantics_kMutableZeroCopy,
};

enum PJRT_NamedValue_Type : uint32_t {
  PJRT_NamedValue_kString,
  PJRT_NamedValue_kInt64,
  PJRT_NamedValue_kInt64List,
  PJRT_NamedValue_kFloat,
  PJRT_NamedValue_kBool,
};

/** An attribute or option. */
struct PJRT_NamedValue {
  size_t struct_size;
  void* extension_start;
  const char* name;
  size_t name_size;
  PJRT_NamedValue_Type type;
  union {
    const char* string_value;
    int64_t int64_value;
    const int64_t* int64_array_value;
    float float_value;
    bool bool_value;
  };
  size_t value_size;
};

enum PJRT_Buffer_MemoryLayout_Type : uint32_t {
  PJRT_Buffer_MemoryLayout_Type_Tiled,
  PJRT_Buffer_MemoryLayout_Type_Strides,
};

struct PJRT_Buffer_MemoryLayout_Tiled {
  size_t struct_size;
  void* extension_start;
  const int64_t* minor_to_major;
  size_t minor_to_major_size;
  const int64_t* tile_dims;
  const size_t* tile_dim_sizes;
  size_t num_tiles;
};

struct PJRT_Buffer_MemoryLayout_Strides {
  size_t struct_size;
  void* extension_start;
  const int64_t* byte_strides;
  size_t num_byte_strides;
};

/** The order of an array's elements in memory. */
struct PJRT_Buffer_MemoryLayout {
  size_t struct_size;
  void* extension_start;
  union {
    PJRT_Buffer_MemoryLayout_Tiled tiled;
    PJRT_Buffer_MemoryLayout_Strides strides;
  };
  PJRT_Buffer_MemoryLayout_Type type;
};

struct PJRT_Api_Version {
  size_t struct_size;
  void* extension_start;
  int major_version;
  int minor_version;
};

#endif  // KILN_JAX_PLUGIN_API_TYPES_H_

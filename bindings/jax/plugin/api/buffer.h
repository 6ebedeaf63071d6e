/** @file
 *  Arguments of the functions on buffers. */
#ifndef KILN_JAX_PLUGIN_API_BUFFER_H_
#define KILN_JAX_PLUGIN_API_BUFFER_H_

#include "plugin/api/types.h"

struct PJRT_Client_BufferFromHostBuffer_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Client* client;
  const void* data;
  PJRT_Buffer_Type type;
  const int64_t* dims;
  size_t num_dims;
  const int64_t* byte_strides;
  size_t num_byte_strides;
  PJRT_HostBufferSemantics host_buffer_semantics;
  PJRT_Device* device;
  PJRT_Memory* memory;
  const PJRT_Buffer_MemoryLayout* device_layout;
  PJRT_Event* done_with_host_buffer;
  PJRT_Buffer* buffer;
};

struct PJRT_Client_CreateViewOfDeviceBuffer_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Client* client;
  void* device_buffer_ptr;
  const int64_t* dims;
  size_t num_dims;
  PJRT_Buffer_Type element_type;
  const PJRT_Buffer_MemoryLayout* layout;
  PJRT_Device* device;
  void (*on_delete_callback)(void* device_buffer_ptr, void* user_arg);
  void* on_delete_callback_arg;
  intptr_t stream;
  PJRT_Buffer* buffer;
  PJRT_Memory* memory;
};

struct PJRT_Buffer_Destroy_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
};

struct PJRT_Buffer_ElementType_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Buffer_Type type;
};

struct PJRT_Buffer_Dimensions_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
  const int64_t* dims;
  size_t num_dims;
};

struct PJRT_Buffer_UnpaddedDimensions_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
  const int64_t* unpadded_dims;
  size_t num_dims;
};

struct PJRT_Buffer_DynamicDimensionIndices_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
  const size_t* dynamic_dim_indices;
  size_t num_dynamic_dims;
};

struct PJRT_Buffer_GetMemoryLayout_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Buffer_MemoryLayout layout;
};

struct PJRT_Buffer_OnDeviceSizeInBytes_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
  size_t on_device_size_in_bytes;
};

struct PJRT_Buffer_Device_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Device* device;
};

struct PJRT_Buffer_Memory_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Memory* memory;
};

struct PJRT_Buffer_Delete_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
};

struct PJRT_Buffer_IsDeleted_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
  bool is_deleted;
};

struct PJRT_Buffer_CopyToDevice_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Device* dst_device;
  PJRT_Buffer* dst_buffer;
};

struct PJRT_Buffer_CopyToMemory_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Memory* dst_memory;
  PJRT_Buffer* dst_buffer;
};

struct PJRT_Buffer_ToHostBuffer_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* src;
  const PJRT_Buffer_MemoryLayout* host_layout;
  void* dst;
  size_t dst_size;
  PJRT_Event* event;
};

struct PJRT_Buffer_IsOnCpu_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
  bool is_on_cpu;
};

struct PJRT_Buffer_ReadyEvent_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Event* event;
};

struct PJRT_Buffer_UnsafePointer_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
  uintptr_t buffer_pointer;
};

struct PJRT_Buffer_IncreaseExternalReferenceCount_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
};

struct PJRT_Buffer_DecreaseExternalReferenceCount_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
};

struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Buffer* buffer;
  void* device_memory_ptr;
};

#endif  // KILN_JAX_PLUGIN_API_BUFFER_H_

/** @file
 *  Buffers of the plugin. */
#ifndef KILN_JAX_PLUGIN_BUFFER_H_
#define KILN_JAX_PLUGIN_BUFFER_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "kiln/buffer.h"
#include "plugin/api/buffer.h"
#include "plugin/client.h"
#include "plugin/error.h"
#include "plugin/layout.h"

/** An array. Its type and sizes stay when its memory has been deleted or donated. Any thread. */
struct PJRT_Buffer {
  std::shared_ptr<kiln_jax::Client> client;
  PJRT_Memory* memory = nullptr;  // of the client
  PJRT_Buffer_Type type;
  bool borrowed = false;  // the caller's memory, which no execution may write
  std::vector<int64_t> dims;
  kiln_jax::Layout layout;
  size_t bytes = 0;
  std::atomic<bool> is_copied = false;  // once told not to be on the CPU, as it was not ready

  std::mutex mutex;               // guards the members below
  kiln_buffer* buffer = nullptr;  // one reference; NULL: deleted or donated
  int external = 0;               // the caller's direct uses of the memory
  kiln_buffer* held = nullptr;    // one reference while there are any
};

namespace kiln_jax {

/** Makes a buffer that takes over the reference `buffer`. Throws std::bad_alloc, with the reference
 *  released. */
PJRT_Buffer* MakeBuffer(std::shared_ptr<Client> client, PJRT_Memory* memory, PJRT_Buffer_Type type,
                        std::vector<int64_t> dims, size_t bytes, kiln_buffer* buffer);

/** The memory of the buffer, with a reference for the caller; NULL if deleted or donated. */
kiln_buffer* Retain(PJRT_Buffer* buffer);

/** The error for a use of a buffer without memory. */
PJRT_Error* DeletedError();

PJRT_Error* BufferDestroy(PJRT_Buffer_Destroy_Args* args);
PJRT_Error* BufferElementType(PJRT_Buffer_ElementType_Args* args);
PJRT_Error* BufferDimensions(PJRT_Buffer_Dimensions_Args* args);
PJRT_Error* BufferUnpaddedDimensions(PJRT_Buffer_UnpaddedDimensions_Args* args);
PJRT_Error* BufferDynamicDimensionIndices(PJRT_Buffer_DynamicDimensionIndices_Args* args);
PJRT_Error* BufferGetMemoryLayout(PJRT_Buffer_GetMemoryLayout_Args* args);
PJRT_Error* BufferOnDeviceSizeInBytes(PJRT_Buffer_OnDeviceSizeInBytes_Args* args);
PJRT_Error* BufferDevice(PJRT_Buffer_Device_Args* args);
PJRT_Error* BufferMemory(PJRT_Buffer_Memory_Args* args);
PJRT_Error* BufferDelete(PJRT_Buffer_Delete_Args* args);
PJRT_Error* BufferIsDeleted(PJRT_Buffer_IsDeleted_Args* args);
PJRT_Error* BufferIsOnCpu(PJRT_Buffer_IsOnCpu_Args* args);
PJRT_Error* BufferReadyEvent(PJRT_Buffer_ReadyEvent_Args* args);
PJRT_Error* BufferUnsafePointer(PJRT_Buffer_UnsafePointer_Args* args);
PJRT_Error* BufferIncreaseReferences(PJRT_Buffer_IncreaseExternalReferenceCount_Args* args);
PJRT_Error* BufferDecreaseReferences(PJRT_Buffer_DecreaseExternalReferenceCount_Args* args);
PJRT_Error* BufferDataPointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args* args);

// view.cc
PJRT_Error* BufferView(PJRT_Client_CreateViewOfDeviceBuffer_Args* args);

// The place of a view may also be told by its memory since 0.63.
template <>
inline constexpr size_t kOldestSize<PJRT_Client_CreateViewOfDeviceBuffer_Args> =
    offsetof(PJRT_Client_CreateViewOfDeviceBuffer_Args, memory);

// transfer.cc
PJRT_Error* BufferFromHost(PJRT_Client_BufferFromHostBuffer_Args* args);
PJRT_Error* BufferToHost(PJRT_Buffer_ToHostBuffer_Args* args);
PJRT_Error* BufferCopyToDevice(PJRT_Buffer_CopyToDevice_Args* args);
PJRT_Error* BufferCopyToMemory(PJRT_Buffer_CopyToMemory_Args* args);

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_BUFFER_H_

/** @file
 *  Buffers of the plugin. */
#ifndef KILN_JAX_PLUGIN_BUFFER_H_
#define KILN_JAX_PLUGIN_BUFFER_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "plugin/api/buffer.h"
#include "plugin/client.h"
#include "plugin/error.h"
#include "plugin/handles.h"
#include "plugin/layout.h"

namespace kiln_jax {

/** The type and place of an array. */
struct BufferSpec {
  std::shared_ptr<Client> client;
  PJRT_Memory* memory = nullptr;  // of the client
  PJRT_Buffer_Type type = PJRT_Buffer_Type_INVALID;
  std::vector<int64_t> dims;
  Layout layout;
  size_t bytes = 0;
};

}  // namespace kiln_jax

/** An array. What it is stays when its memory has been deleted or donated. Any thread. */
struct PJRT_Buffer : kiln_jax::BufferSpec {
  explicit PJRT_Buffer(kiln_jax::BufferSpec spec, kiln_jax::BufferHandle memory = nullptr)
      : BufferSpec(std::move(spec)), buffer(std::move(memory)) {}

  bool borrowed = false;                // the caller's memory, which no execution may write
  std::atomic<bool> is_copied = false;  // once told not to be on the CPU, as it was not ready

  std::mutex mutex;               // guards the members below
  kiln_jax::BufferHandle buffer;  // NULL: deleted or donated
  int external = 0;               // the caller's direct uses of the memory
  kiln_jax::BufferHandle held;    // the memory while there are any
};

namespace kiln_jax {

/** Reads what the caller says of an array: INVALID_ARGUMENT or UNIMPLEMENTED for arrays that no
 *  buffer can have.
 *  @param memory NULL: the client's default
 *  @param layout NULL: row-major */
PJRT_Error* ReadSpec(const std::shared_ptr<Client>& client, PJRT_Memory* memory,
                     PJRT_Buffer_Type type, const int64_t* dims, size_t rank,
                     const PJRT_Buffer_MemoryLayout* layout, BufferSpec* spec);

/** The memory of the buffer; NULL if deleted or donated. */
BufferHandle Retain(PJRT_Buffer* buffer);

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

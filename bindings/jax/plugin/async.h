/** @file
 *  Buffers that the caller makes ready, and copies of parts of buffers. */
#ifndef KILN_JAX_PLUGIN_ASYNC_H_
#define KILN_JAX_PLUGIN_ASYNC_H_

#include "plugin/api/async.h"
#include "plugin/error.h"

namespace kiln_jax {

// async.cc
PJRT_Error* UninitializedBuffer(PJRT_Client_CreateUninitializedBuffer_Args* args);
PJRT_Error* ErrorBuffer(PJRT_Client_CreateErrorBuffer_Args* args);
PJRT_Error* AliasBuffer(PJRT_Client_CreateAliasBuffer_Args* args);
PJRT_Error* FulfillAliasBuffer(PJRT_Client_FulfillAliasBuffer_Args* args);
PJRT_Error* BufferRawToHost(PJRT_Buffer_CopyRawToHost_Args* args);
PJRT_Error* BufferRawToHostFuture(PJRT_Buffer_CopyRawToHostFuture_Args* args);
PJRT_Error* BufferDonateWithDependency(PJRT_Buffer_DonateWithControlDependency_Args* args);

// transfer_manager.cc
PJRT_Error* TransferManagerCreate(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args* args);
PJRT_Error* TransferManagerDestroy(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args* args);
PJRT_Error* TransferManagerData(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args* args);
PJRT_Error* TransferManagerLiteral(
    PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args* args);
PJRT_Error* TransferManagerRetrieve(
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args* args);
PJRT_Error* TransferManagerDevice(PJRT_AsyncHostToDeviceTransferManager_Device_Args* args);
PJRT_Error* TransferManagerCount(PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args* args);
PJRT_Error* TransferManagerSize(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args* args);
PJRT_Error* TransferManagerError(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args* args);
PJRT_Error* TransferManagerMetadata(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args* args);

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_ASYNC_H_

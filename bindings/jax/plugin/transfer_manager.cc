// Arrays that the caller transfers to the device in parts.
#include <mutex>
#include <utility>

#include "plugin/async.h"
#include "plugin/dtype.h"
#include "plugin/event.h"
#include "plugin/pending.h"

namespace kiln_jax {
namespace {

/** An array of the manager's; transfers share it. */
struct Slot {
  BufferSpec spec;
  BufferHandle memory;
  EventHandle ready;

  std::mutex mutex;  // guards the members below
  int transfers = 0;
  bool has_last = false;
  bool is_retrieved = false;

  /** With the array's last transfer over it is ready. */
  void EndTransfer(const kiln_error* failure) {
    bool is_whole = false;
    {
      std::lock_guard<std::mutex> lock(mutex);
      is_whole = --transfers == 0 && has_last;
    }
    // A second call, after a failure, is without effect.
    if (failure != nullptr || is_whole) kiln_error_release(kiln_event_set(ready.get(), failure));
  }
};

using SlotReference = std::shared_ptr<Slot>;

}  // namespace
}  // namespace kiln_jax

struct PJRT_AsyncHostToDeviceTransferManager {
  std::shared_ptr<kiln_jax::Client> client;
  PJRT_Device* device;
  std::vector<std::shared_ptr<kiln_jax::Slot>> slots;
};

namespace kiln_jax {
namespace {

PJRT_Error* FindSlot(const PJRT_AsyncHostToDeviceTransferManager& manager, int index,
                     SlotReference* slot) {
  if (index < 0 || static_cast<size_t>(index) >= manager.slots.size()) {
    return InvalidArgument("there is no buffer " + std::to_string(index) + "; there are " +
                           std::to_string(manager.slots.size()));
  }
  *slot = manager.slots[static_cast<size_t>(index)];
  return nullptr;
}

PJRT_Error* StartTransfer(const SlotReference& slot, const void* data, int64_t offset, int64_t size,
                          bool is_last, PJRT_Event** done) {
  if (offset < 0 || size < 0) {
    return InvalidArgument("a transfer of " + std::to_string(size) + " bytes to " +
                           std::to_string(offset));
  }
  auto reference = std::make_unique<SlotReference>(slot);
  {
    std::lock_guard<std::mutex> lock(slot->mutex);
    if (slot->has_last) {
      return MakeError(PJRT_Error_Code_FAILED_PRECONDITION,
                       "the last transfer of the buffer has been started before");
    }
    ++slot->transfers;
    slot->has_last = is_last;
  }
  kiln_event* copied = nullptr;
  kiln_error* error = kiln_buffer_write_part(slot->memory.get(), static_cast<size_t>(offset), data,
                                             static_cast<size_t>(size), &copied);
  EventHandle event(error == nullptr ? copied : nullptr);
  if (error == nullptr) {
    error = kiln_event_on_ready(
        copied,
        [](void* user_data, const kiln_error* failure) {
          (*static_cast<SlotReference*>(user_data))->EndTransfer(failure);
        },
        reference.get(), [](void* user_data) { delete static_cast<SlotReference*>(user_data); });
  }
  if (error != nullptr) {
    std::lock_guard<std::mutex> lock(slot->mutex);
    --slot->transfers;
    if (is_last) slot->has_last = false;
    return TakeError(error);
  }
  (void)reference.release();
  *done = MakeEvent(std::move(event));
  return nullptr;
}

}  // namespace

PJRT_Error* TransferManagerCreate(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args* args) {
  const std::shared_ptr<Client>& client = args->client->client;
  std::unique_ptr<PJRT_AsyncHostToDeviceTransferManager> manager(
      new PJRT_AsyncHostToDeviceTransferManager{
          client, args->memory == nullptr ? client->device_list[0] : args->memory->device, {}});
  for (size_t i = 0; i < args->num_shape_specs; ++i) {
    const PJRT_ShapeSpec& shape = args->shape_specs[i];
    const PJRT_Buffer_MemoryLayout* layout =
        i < args->num_device_layouts ? args->device_layouts[i] : nullptr;
    auto slot = std::make_shared<Slot>();
    if (PJRT_Error* error = ReadSpec(client, args->memory, shape.element_type, shape.dims,
                                     shape.num_dims, layout, &slot->spec)) {
      return error;
    }
    if (PJRT_Error* error = AllocatePending(slot->spec, &slot->memory, &slot->ready)) return error;
    manager->slots.push_back(std::move(slot));
  }
  args->transfer_manager = manager.release();
  return nullptr;
}

PJRT_Error* TransferManagerDestroy(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args* args) {
  const std::unique_ptr<PJRT_AsyncHostToDeviceTransferManager> manager(args->transfer_manager);
  if (manager == nullptr) return nullptr;
  for (const SlotReference& slot : manager->slots) {
    std::unique_lock<std::mutex> lock(slot->mutex);
    if (slot->has_last) continue;  // the transfers in progress make it ready
    lock.unlock();
    SetEvent(slot->ready.get(), PJRT_Error_Code_CANCELLED,
             "the transfers of the buffer were given up before the last one");
  }
  return nullptr;
}

PJRT_Error* TransferManagerData(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args* args) {
  SlotReference slot;
  if (PJRT_Error* error = FindSlot(*args->transfer_manager, args->buffer_index, &slot))
    return error;
  return StartTransfer(slot, args->data, args->offset, args->transfer_size, args->is_last_transfer,
                       &args->done_with_h2d_transfer);
}

PJRT_Error* TransferManagerLiteral(
    PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args* args) {
  SlotReference slot;
  if (PJRT_Error* error = FindSlot(*args->transfer_manager, args->buffer_index, &slot))
    return error;
  BufferSpec spec;
  if (PJRT_Error* error =
          ReadSpec(slot->spec.client, nullptr, args->shape_element_type, args->shape_dims,
                   args->shape_num_dims, args->shape_layout, &spec)) {
    return error;
  }
  if (!spec.layout.empty()) return UnimplementedError("arrays that are not in row-major order");
  if (spec.type != slot->spec.type || spec.dims != slot->spec.dims) {
    return InvalidArgument("the array has another shape than buffer " +
                           std::to_string(args->buffer_index));
  }
  return StartTransfer(slot, args->data, 0, static_cast<int64_t>(spec.bytes), true,
                       &args->done_with_h2d_transfer);
}

PJRT_Error* TransferManagerRetrieve(
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args* args) {
  SlotReference slot;
  if (PJRT_Error* error = FindSlot(*args->transfer_manager, args->buffer_index, &slot))
    return error;
  {
    std::lock_guard<std::mutex> lock(slot->mutex);
    if (std::exchange(slot->is_retrieved, true)) {
      return InvalidArgument("buffer " + std::to_string(args->buffer_index) +
                             " has been retrieved before");
    }
  }
  args->buffer_out = new PJRT_Buffer(slot->spec, Share(slot->memory));
  return nullptr;
}

PJRT_Error* TransferManagerDevice(PJRT_AsyncHostToDeviceTransferManager_Device_Args* args) {
  args->device_out = args->transfer_manager->device;
  return nullptr;
}

PJRT_Error* TransferManagerCount(PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args* args) {
  args->buffer_count = args->transfer_manager->slots.size();
  return nullptr;
}

PJRT_Error* TransferManagerSize(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args* args) {
  SlotReference slot;
  if (PJRT_Error* error = FindSlot(*args->transfer_manager, args->buffer_index, &slot))
    return error;
  args->buffer_size = slot->spec.bytes;
  return nullptr;
}

PJRT_Error* TransferManagerError(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args* args) {
  SlotReference slot;
  if (PJRT_Error* error = FindSlot(*args->transfer_manager, args->buffer_index, &slot))
    return error;
  if (args->error_code == PJRT_Error_Code_OK) {
    return InvalidArgument("the error of a buffer needs another code than OK");
  }
  SetEvent(slot->ready.get(), args->error_code,
           {args->error_message == nullptr ? "" : args->error_message,
            args->error_message == nullptr ? 0 : args->error_message_size});
  return nullptr;
}

PJRT_Error* TransferManagerMetadata(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args*) {
  return nullptr;  // for the caller's logs; nothing is done with it
}

}  // namespace kiln_jax

#include "plugin/async.h"

#include <string_view>
#include <utility>

#include "plugin/event.h"
#include "plugin/pending.h"

namespace kiln_jax {
namespace {

std::string_view TextOf(const char* text, size_t size) {
  return text == nullptr ? std::string_view() : std::string_view(text, size);
}

/** Reads what the caller says of a new buffer. */
template <typename Args>
PJRT_Error* ReadShape(const Args& args, PJRT_Memory* memory, BufferSpec* spec) {
  return ReadSpec(args.client->client, memory, args.shape_element_type, args.shape_dims,
                  args.shape_num_dims, args.shape_layout, spec);
}

/** Starts to copy a part of a buffer to the caller's memory. */
PJRT_Error* ReadPart(kiln_buffer* memory, int64_t offset, int64_t size, void* to,
                     kiln_event** done) {
  if (offset < 0 || size < 0) {
    return InvalidArgument("a part of " + std::to_string(size) + " bytes at " +
                           std::to_string(offset));
  }
  return TakeError(kiln_buffer_read_part(memory, static_cast<size_t>(offset), to,
                                         static_cast<size_t>(size), done));
}

/** A copy to an address that the caller tells later. */
struct RawCopy {
  std::shared_ptr<Client> client;
  BufferHandle memory;
  int64_t offset;
  int64_t size;
  std::shared_ptr<Promise> done;
};

void Finish(const std::shared_ptr<Promise>& done, const kiln_error* failure) {
  size_t length = 0;
  const char* message = failure == nullptr ? "" : kiln_error_message(failure, &length);
  done->Set(failure == nullptr ? PJRT_Error_Code_OK
                               : static_cast<PJRT_Error_Code>(kiln_error_code(failure)),
            std::string(message, length));
}

void StartRawCopy(PJRT_Buffer_CopyRawToHostFuture_Callback_Args* args) {
  std::unique_ptr<RawCopy> copy(static_cast<RawCopy*>(args->callback_data));
  if (args->error_code != PJRT_Error_Code_OK) {
    copy->done->Set(args->error_code,
                    std::string(TextOf(args->error_message, args->error_message_size)));
    return;
  }
  kiln_event* copied = nullptr;
  kiln_error* error = kiln_buffer_read_part(copy->memory.get(), static_cast<size_t>(copy->offset),
                                            args->dst, static_cast<size_t>(copy->size), &copied);
  if (error == nullptr) {
    const EventHandle event(copied);
    error = kiln_event_on_ready(
        copied,
        [](void* user_data, const kiln_error* failure) {
          Finish(static_cast<RawCopy*>(user_data)->done, failure);
        },
        copy.get(), [](void* user_data) { delete static_cast<RawCopy*>(user_data); });
    if (error == nullptr) {
      (void)copy.release();
      return;
    }
  }
  Finish(copy->done, error);
  kiln_error_release(error);
}

/** The event that a donated buffer's value waits for. */
struct Dependency {
  std::shared_ptr<Client> client;
  EventHandle event;
};

void EndDependency(PJRT_Buffer_DonateWithControlDependency_Callback_Args* args) {
  const std::unique_ptr<Dependency> dependency(static_cast<Dependency*>(args->callback_data));
  SetEvent(dependency->event.get(), args->error_code,
           TextOf(args->error_message, args->error_message_size));
}

}  // namespace
}  // namespace kiln_jax

/** A buffer that waits for another one's value. */
struct PJRT_FulfillAliasBufferCallback {
  kiln_jax::BufferSpec spec;
  kiln_jax::BufferHandle memory;
  kiln_jax::EventHandle ready;
  const void* address;  // while it is pending it may be donated, and tell its address no more
};

namespace kiln_jax {
namespace {

using Alias = PJRT_FulfillAliasBufferCallback;

/** Copies the value of `buffer` into the alias, which is ready then. */
PJRT_Error* CopyToAlias(PJRT_Buffer* buffer, std::unique_ptr<Alias> alias) {
  if (buffer->type != alias->spec.type || buffer->dims != alias->spec.dims) {
    return InvalidArgument("the buffer has another shape than its alias");
  }
  if (buffer->layout != alias->spec.layout) {
    return UnimplementedError("buffers that are not in the order of elements of their alias");
  }
  const BufferHandle source = Retain(buffer);
  if (source == nullptr) return DeletedError();
  kiln_event* copied = nullptr;
  kiln_error* error = kiln_buffer_copy_to_host_async(
      source.get(), const_cast<void*>(alias->address), alias->spec.bytes, &copied);
  if (error != nullptr) return TakeError(error);
  const EventHandle event(copied);
  error = kiln_event_on_ready(
      copied,
      [](void* user_data, const kiln_error* failure) {
        kiln_error_release(kiln_event_set(static_cast<Alias*>(user_data)->ready.get(), failure));
      },
      alias.get(), [](void* user_data) { delete static_cast<Alias*>(user_data); });
  if (error == nullptr) (void)alias.release();
  return TakeError(error);
}

}  // namespace

PJRT_Error* UninitializedBuffer(PJRT_Client_CreateUninitializedBuffer_Args* args) {
  PJRT_Memory* memory = args->memory;
  if (memory == nullptr && args->device != nullptr) memory = args->device->memories[0];
  BufferSpec spec;
  BufferHandle made;
  if (PJRT_Error* error = ReadShape(*args, memory, &spec)) return error;
  if (PJRT_Error* error = Allocate(spec, &made)) return error;
  args->buffer = new PJRT_Buffer(std::move(spec), std::move(made));
  return nullptr;
}

PJRT_Error* ErrorBuffer(PJRT_Client_CreateErrorBuffer_Args* args) {
  if (args->error_code == PJRT_Error_Code_OK) {
    return InvalidArgument("an error buffer needs an error, not OK");
  }
  BufferSpec spec;
  BufferHandle made;
  EventHandle ready;
  if (PJRT_Error* error = ReadShape(*args, args->memory, &spec)) return error;
  if (PJRT_Error* error = AllocatePending(spec, &made, &ready)) return error;
  SetEvent(ready.get(), args->error_code, TextOf(args->error_message, args->error_message_size));
  args->buffer = new PJRT_Buffer(std::move(spec), std::move(made));
  return nullptr;
}

PJRT_Error* AliasBuffer(PJRT_Client_CreateAliasBuffer_Args* args) {
  BufferSpec spec;
  BufferHandle made;
  EventHandle ready;
  if (PJRT_Error* error = ReadShape(*args, args->memory, &spec)) return error;
  if (PJRT_Error* error = AllocatePending(spec, &made, &ready)) return error;
  const void* address = nullptr;
  if (kiln_error* error = kiln_buffer_address(made.get(), &address)) return TakeError(error);
  std::unique_ptr<Alias> alias(new Alias{spec, Share(made), std::move(ready), address});
  args->alias_buffer = new PJRT_Buffer(std::move(spec), std::move(made));
  args->fulfill_alias_buffer_cb = alias.release();
  return nullptr;
}

PJRT_Error* FulfillAliasBuffer(PJRT_Client_FulfillAliasBuffer_Args* args) {
  std::unique_ptr<Alias> alias(args->fulfill_alias_buffer_cb);
  if (alias == nullptr) return InvalidArgument("`fulfill_alias_buffer_cb` is NULL");
  if (args->status_code != PJRT_Error_Code_OK) {
    SetEvent(alias->ready.get(), args->status_code,
             TextOf(args->error_message, args->error_message_size));
    return nullptr;
  }
  if (args->buffer == nullptr) return InvalidArgument("`buffer` is NULL");
  // Whatever happens, the alias does not stay pending.
  kiln_event* ready = alias->ready.get();
  kiln_event_retain(ready);
  const EventHandle last(ready);
  PJRT_Error* error = CopyToAlias(args->buffer, std::move(alias));
  if (error != nullptr) SetEvent(ready, error->code, error->message);
  return error;
}

PJRT_Error* BufferRawToHost(PJRT_Buffer_CopyRawToHost_Args* args) {
  const BufferHandle memory = Retain(args->buffer);
  if (memory == nullptr) return DeletedError();
  kiln_event* done = nullptr;
  if (PJRT_Error* error =
          ReadPart(memory.get(), args->offset, args->transfer_size, args->dst, &done)) {
    return error;
  }
  args->event = MakeEvent(EventHandle(done));
  return nullptr;
}

PJRT_Error* BufferRawToHostFuture(PJRT_Buffer_CopyRawToHostFuture_Args* args) {
  BufferHandle memory = Retain(args->buffer);
  if (memory == nullptr) return DeletedError();
  const auto bytes = static_cast<int64_t>(args->buffer->bytes);
  if (args->offset < 0 || args->transfer_size < 0 || args->offset > bytes ||
      args->transfer_size > bytes - args->offset) {
    return MakeError(PJRT_Error_Code_OUT_OF_RANGE,
                     "a part of " + std::to_string(args->transfer_size) + " bytes at " +
                         std::to_string(args->offset) + " of " + std::to_string(bytes));
  }
  auto done = std::make_shared<Promise>();
  std::unique_ptr<RawCopy> copy(new RawCopy{args->buffer->client, std::move(memory), args->offset,
                                            args->transfer_size, done});
  args->event = new PJRT_Event{nullptr, std::move(done)};
  args->callback_data = copy.release();
  args->future_ready_callback = StartRawCopy;
  return nullptr;
}

PJRT_Error* BufferDonateWithDependency(PJRT_Buffer_DonateWithControlDependency_Args* args) {
  PJRT_Buffer* buffer = args->buffer;
  kiln_event* made = nullptr;
  if (kiln_error* error = kiln_event_create(buffer->client->context, &made)) {
    return TakeError(error);
  }
  std::unique_ptr<Dependency> dependency(new Dependency{buffer->client, EventHandle(made)});
  auto donated = std::make_unique<PJRT_Buffer>(static_cast<const BufferSpec&>(*buffer));
  donated->borrowed = buffer->borrowed;
  {
    std::lock_guard<std::mutex> lock(buffer->mutex);
    if (buffer->buffer == nullptr) return DeletedError();
    if (buffer->external > 0) {
      return InvalidArgument("the buffer's memory is in use by the caller and cannot be donated");
    }
    if (kiln_error* error = kiln_buffer_delay(buffer->buffer.get(), made)) return TakeError(error);
    donated->buffer = std::move(buffer->buffer);
  }
  args->out_buffer = donated.release();
  args->callback_data = dependency.release();
  args->dependency_ready_callback = EndDependency;
  return nullptr;
}

}  // namespace kiln_jax

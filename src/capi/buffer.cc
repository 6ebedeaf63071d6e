// Buffers of host memory, and copies.
#include "kiln/buffer.h"

#include <memory>

#include "base/strings.h"
#include "capi/error.h"
#include "capi/handle.h"
#include "capi/options.h"
#include "client/transfer.h"
#include "program/program.h"

static_assert(KILN_ALIGNMENT == kiln::program::kAlignment);

using kiln::FailedPrecondition;
using kiln::InvalidArgument;
using kiln::OkStatus;
using kiln::Ref;
using kiln::Shape;
using kiln::Status;
using kiln::capi::Guard;
using kiln::capi::HandOver;
using kiln::capi::NotNull;
using kiln::capi::ShapeOfMemory;
using kiln::capi::Unwrap;
using kiln::client::Buffer;
using kiln::client::DeleterCall;
using kiln::client::Device;
using kiln::client::Event;
using kiln::client::LogLevel;
using kiln::client::Transfer;

namespace {

void WarnOfAlignment(const Buffer& buffer) {
  if (buffer.is_aligned() || buffer.bytes() == 0) return;
  buffer.client().Log(
      LogLevel::kInfo,
      kiln::Cat("memory of ", buffer.shape(), " is not at a multiple of ", KILN_ALIGNMENT,
                " bytes; as a result it will be copied after each ", "execution"));
}

Status CheckData(const void* data, size_t bytes) {
  if (data || bytes == 0) return OkStatus();
  return InvalidArgument("data is NULL, with ", bytes, " bytes");
}

// `bytes` bytes at `data` as the buffer's array.
Status CheckMemoryOf(const Buffer& buffer, const void* data, size_t bytes) {
  return kiln::capi::CheckMemoryOf(buffer.shape(), data, bytes);
}

}  // namespace

kiln_error* kiln_buffer_create(kiln_device* device, kiln_dtype dtype, const int64_t* dims,
                               size_t rank, kiln_buffer** buffer) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_create", {{"device", device}, {"buffer", buffer}}));
    Shape shape = Shape::Token();
    if (dtype != KILN_TOKEN || rank != 0) {
      KILN_ASSIGN_OR_RETURN(shape, kiln::capi::ShapeOf(dtype, dims, rank));
    }
    KILN_ASSIGN_OR_RETURN(Ref<Buffer> made, Buffer::Allocate(*Unwrap(device), shape));
    KILN_RETURN_IF_ERROR(Unwrap(device)->runtime().FillZero(made->data(), made->bytes()));
    *buffer = HandOver(std::move(made));
    return OkStatus();
  });
}

kiln_error* kiln_buffer_copy_host(kiln_device* device, kiln_dtype dtype, const int64_t* dims,
                                  size_t rank, const void* data, size_t bytes,
                                  kiln_buffer** buffer) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_buffer_copy_host", {{"device", device}, {"buffer", buffer}}));
    KILN_ASSIGN_OR_RETURN(Shape shape, ShapeOfMemory(dtype, dims, rank, data, bytes));
    KILN_ASSIGN_OR_RETURN(Ref<Buffer> made, CopyFromHost(*Unwrap(device), shape, data));
    *buffer = HandOver(std::move(made));
    return OkStatus();
  });
}

kiln_error* kiln_buffer_borrow_host(kiln_device* device, kiln_dtype dtype, const int64_t* dims,
                                    size_t rank, void* data, size_t bytes, kiln_event** done,
                                    kiln_buffer** buffer) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_buffer_borrow_host", {{"device", device}, {"buffer", buffer}}));
    KILN_ASSIGN_OR_RETURN(Shape shape, ShapeOfMemory(dtype, dims, rank, data, bytes));
    Ref<Event> event;
    if (done) event = kiln::MakeRef<Event>(Unwrap(device)->client());
    Ref<Buffer> made;
    if (Unwrap(device)->shares_host_memory()) {
      made = Buffer::Wrap(*Unwrap(device), shape, static_cast<std::byte*>(data), nullptr);
      made->storage().set_done(event);
      WarnOfAlignment(*made);
    } else {
      KILN_ASSIGN_OR_RETURN(made, CopyFromHost(*Unwrap(device), shape, data));
      if (event) event->Finish(OkStatus());
    }
    if (done) *done = HandOver(std::move(event));
    *buffer = HandOver(std::move(made));
    return OkStatus();
  });
}

kiln_error* kiln_buffer_adopt_host(kiln_device* device, kiln_dtype dtype, const int64_t* dims,
                                   size_t rank, void* data, size_t bytes,
                                   void (*deleter)(void* user_data), void* user_data,
                                   kiln_buffer** buffer) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_buffer_adopt_host", {{"device", device},
                                           {"deleter", reinterpret_cast<const void*>(deleter)},
                                           {"buffer", buffer}}));
    KILN_ASSIGN_OR_RETURN(Shape shape, ShapeOfMemory(dtype, dims, rank, data, bytes));
    Ref<Buffer> made;
    if (Unwrap(device)->shares_host_memory()) {
      made = Buffer::Wrap(*Unwrap(device), shape, static_cast<std::byte*>(data),
                          std::make_unique<DeleterCall>(deleter, user_data));
      WarnOfAlignment(*made);
    } else {
      KILN_ASSIGN_OR_RETURN(made, CopyFromHost(*Unwrap(device), shape, data));
      deleter(user_data);
    }
    *buffer = HandOver(std::move(made));
    return OkStatus();
  });
}

kiln_error* kiln_buffer_copy_host_async(kiln_device* device, kiln_dtype dtype, const int64_t* dims,
                                        size_t rank, const void* data, size_t bytes,
                                        kiln_event** done, kiln_buffer** buffer) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_copy_host_async",
                                 {{"device", device}, {"done", done}, {"buffer", buffer}}));
    KILN_ASSIGN_OR_RETURN(Shape shape, ShapeOfMemory(dtype, dims, rank, data, bytes));
    KILN_ASSIGN_OR_RETURN(Transfer copy, StartCopyFromHost(*Unwrap(device), shape, data));
    *done = HandOver(std::move(copy.event));
    *buffer = HandOver(std::move(copy.buffer));
    return OkStatus();
  });
}

kiln_error* kiln_buffer_copy_to_host(kiln_buffer* buffer, void* data, size_t bytes) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_copy_to_host", {{"buffer", buffer}}));
    Buffer& from = *Unwrap(buffer);
    KILN_RETURN_IF_ERROR(CheckMemoryOf(from, data, bytes));
    KILN_RETURN_IF_ERROR(CopyToHost(from, data));
    from.client().RunDeferred();
    return OkStatus();
  });
}

kiln_error* kiln_buffer_copy_to_host_async(kiln_buffer* buffer, void* data, size_t bytes,
                                           kiln_event** done) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_buffer_copy_to_host_async", {{"buffer", buffer}, {"done", done}}));
    Buffer& from = *Unwrap(buffer);
    KILN_RETURN_IF_ERROR(CheckMemoryOf(from, data, bytes));
    KILN_ASSIGN_OR_RETURN(Ref<Event> event, StartCopyToHost(from, 0, data, from.bytes()));
    *done = HandOver(std::move(event));
    from.client().RunDeferred();
    return OkStatus();
  });
}

kiln_error* kiln_buffer_read_part(kiln_buffer* buffer, size_t offset, void* data, size_t bytes,
                                  kiln_event** done) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_read_part", {{"buffer", buffer}, {"done", done}}));
    KILN_RETURN_IF_ERROR(CheckData(data, bytes));
    KILN_ASSIGN_OR_RETURN(Ref<Event> event,
                          StartCopyToHost(*Unwrap(buffer), static_cast<int64_t>(offset), data,
                                          static_cast<int64_t>(bytes)));
    *done = HandOver(std::move(event));
    return OkStatus();
  });
}

kiln_error* kiln_buffer_write_part(kiln_buffer* buffer, size_t offset, const void* data,
                                   size_t bytes, kiln_event** done) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_write_part", {{"buffer", buffer}, {"done", done}}));
    KILN_RETURN_IF_ERROR(CheckData(data, bytes));
    KILN_ASSIGN_OR_RETURN(Ref<Event> event,
                          StartWrite(*Unwrap(buffer), static_cast<int64_t>(offset), data,
                                     static_cast<int64_t>(bytes)));
    *done = HandOver(std::move(event));
    return OkStatus();
  });
}

kiln_error* kiln_buffer_delay(kiln_buffer* buffer, kiln_event* event) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_delay", {{"buffer", buffer}, {"event", event}}));
    if (&Unwrap(event)->client() != &Unwrap(buffer)->client()) {
      return InvalidArgument("kiln_buffer_delay: the event is of another context than the buffer");
    }
    KILN_RETURN_IF_ERROR(Unwrap(buffer)->CheckNotDonated());
    Unwrap(buffer)->Delay(Ref<Event>::Share(Unwrap(event)));
    return OkStatus();
  });
}

kiln_error* kiln_buffer_copy_to_device(kiln_buffer* buffer, kiln_device* device,
                                       kiln_buffer** copy) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_copy_to_device",
                                 {{"buffer", buffer}, {"device", device}, {"copy", copy}}));
    KILN_ASSIGN_OR_RETURN(Ref<Buffer> made, CopyToDevice(*Unwrap(buffer), *Unwrap(device)));
    *copy = HandOver(std::move(made));
    return OkStatus();
  });
}

kiln_error* kiln_buffer_copy_to_device_async(kiln_buffer* buffer, kiln_device* device,
                                             kiln_event** done, kiln_buffer** copy) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_copy_to_device_async",
                                 {{"buffer", buffer}, {"device", device}, {"copy", copy}}));
    KILN_ASSIGN_OR_RETURN(Transfer made, StartCopyToDevice(*Unwrap(buffer), *Unwrap(device)));
    if (done) *done = HandOver(std::move(made.event));
    *copy = HandOver(std::move(made.buffer));
    return OkStatus();
  });
}

kiln_error* kiln_buffer_data(kiln_buffer* buffer, const void** data) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_data", {{"buffer", buffer}, {"data", data}}));
    Buffer& read = *Unwrap(buffer);
    if (!read.device().shares_host_memory()) {
      return FailedPrecondition("the memory of ", read.device().name(),
                                " is not the host's; kiln_buffer_copy_to_host copies it");
    }
    KILN_RETURN_IF_ERROR(read.WaitForValue());
    *data = read.data();
    return OkStatus();
  });
}

kiln_error* kiln_buffer_shape(const kiln_buffer* buffer, kiln_shape* shape) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_shape", {{"buffer", buffer}, {"shape", shape}}));
    return kiln::capi::WriteStruct(
        "kiln_shape", kiln::capi::DescribeShape(Unwrap(buffer)->shape(), Unwrap(buffer)->dims()),
        shape);
  });
}

kiln_device* kiln_buffer_device(const kiln_buffer* buffer) {
  return buffer ? kiln::capi::Wrap(&Unwrap(buffer)->device()) : nullptr;
}

kiln_error* kiln_buffer_ready(kiln_buffer* buffer, kiln_event** event) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_ready", {{"buffer", buffer}, {"event", event}}));
    Ref<Event> ready = Unwrap(buffer)->value();
    if (!ready) {
      ready = kiln::MakeRef<Event>(Unwrap(buffer)->client());
      ready->Finish(OkStatus());
    }
    *event = HandOver(std::move(ready));
    return OkStatus();
  });
}

void kiln_buffer_retain(kiln_buffer* buffer) { kiln::capi::RetainHandle(buffer); }

void kiln_buffer_release(kiln_buffer* buffer) { kiln::capi::ReleaseHandle(buffer); }

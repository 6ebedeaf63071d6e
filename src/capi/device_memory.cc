// Buffers of the caller's device memory, and device addresses of buffers.
#include <memory>

#include "capi/error.h"
#include "capi/handle.h"
#include "capi/options.h"

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
using kiln::client::Deferred;
using kiln::client::DeleterCall;
using kiln::client::Event;

kiln_error* kiln_buffer_borrow_device(kiln_device* device, kiln_dtype dtype, const int64_t* dims,
                                      size_t rank, void* data, size_t bytes, kiln_event** done,
                                      kiln_buffer** buffer) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_buffer_borrow_device", {{"device", device}, {"buffer", buffer}}));
    KILN_ASSIGN_OR_RETURN(Shape shape, ShapeOfMemory(dtype, dims, rank, data, bytes));
    Ref<Event> event;
    if (done) event = kiln::MakeRef<Event>(Unwrap(device)->client());
    std::unique_ptr<Deferred> no_deleter;
    KILN_ASSIGN_OR_RETURN(
        Ref<Buffer> made,
        Buffer::WrapDevice(*Unwrap(device), shape, static_cast<std::byte*>(data), no_deleter));
    made->storage().set_done(event);
    if (done) *done = HandOver(std::move(event));
    *buffer = HandOver(std::move(made));
    return OkStatus();
  });
}

kiln_error* kiln_buffer_adopt_device(kiln_device* device, kiln_dtype dtype, const int64_t* dims,
                                     size_t rank, void* data, size_t bytes,
                                     void (*deleter)(void* user_data), void* user_data,
                                     kiln_buffer** buffer) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_buffer_adopt_device", {{"device", device},
                                             {"deleter", reinterpret_cast<const void*>(deleter)},
                                             {"buffer", buffer}}));
    KILN_ASSIGN_OR_RETURN(Shape shape, ShapeOfMemory(dtype, dims, rank, data, bytes));
    std::unique_ptr<Deferred> call = std::make_unique<DeleterCall>(deleter, user_data);
    KILN_ASSIGN_OR_RETURN(
        Ref<Buffer> made,
        Buffer::WrapDevice(*Unwrap(device), shape, static_cast<std::byte*>(data), call));
    *buffer = HandOver(std::move(made));
    return OkStatus();
  });
}

kiln_error* kiln_buffer_address(kiln_buffer* buffer, const void** data) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_address", {{"buffer", buffer}, {"data", data}}));
    KILN_RETURN_IF_ERROR(Unwrap(buffer)->CheckNotDonated());
    KILN_ASSIGN_OR_RETURN(*data, Unwrap(buffer)->Materialise());
    return OkStatus();
  });
}

kiln_error* kiln_buffer_device_data(kiln_buffer* buffer, const void** data) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_device_data", {{"buffer", buffer}, {"data", data}}));
    Buffer& read = *Unwrap(buffer);
    KILN_RETURN_IF_ERROR(read.WaitForValue());
    // Pending copies to it have no event of their own.
    KILN_RETURN_IF_ERROR(read.device().runtime().Synchronise());
    *data = read.data();
    return OkStatus();
  });
}

#include "capi/buffer.h"

#include "base/strings.h"
#include "capi/error.h"
#include "capi/options.h"
#include "program/program.h"

static_assert(KILN_ALIGNMENT == kiln::program::kAlignment);

using kiln::FailedPrecondition;
using kiln::InvalidArgument;
using kiln::OkStatus;
using kiln::Result;
using kiln::Shape;
using kiln::Status;
using kiln::capi::CheckMemory;
using kiln::capi::Deferred;
using kiln::capi::DeleterCall;
using kiln::capi::Guard;
using kiln::capi::NotNull;
using kiln::capi::Ref;
using kiln::capi::Storage;

namespace {

bool IsAligned(const std::byte* data) {
  return reinterpret_cast<uintptr_t>(data) % kiln::program::kAlignment == 0;
}

}  // namespace

kiln_buffer::kiln_buffer(kiln_device& device, const Shape& shape, Ref<Storage> storage)
    : context_(device.owner->Share()),
      device_(device),
      shape_(shape),
      dims_(shape.dims()),
      storage_(std::move(storage)),
      data_(storage_->data()) {}

Result<Ref<kiln_buffer>> kiln_buffer::Allocate(kiln_device& device, const Shape& shape) {
  KILN_ASSIGN_OR_RETURN(Ref<Storage> storage, Storage::Allocate(device, shape.byte_size()));
  return Ref<kiln_buffer>::Adopt(new kiln_buffer(device, shape, std::move(storage)));
}

Ref<kiln_buffer> kiln_buffer::Wrap(kiln_device& device, const Shape& shape, std::byte* data,
                                   std::unique_ptr<Deferred> deleter) {
  auto buffer = Ref<kiln_buffer>::Adopt(
      new kiln_buffer(device, shape, Storage::Wrap(device, data, shape.byte_size())));
  buffer->storage_->set_deleter(std::move(deleter));
  return buffer;
}

Result<Ref<kiln_buffer>> kiln_buffer::WrapDevice(kiln_device& device, const Shape& shape,
                                                 std::byte* data,
                                                 std::unique_ptr<Deferred>& deleter) {
  if (!IsAligned(data)) {
    return InvalidArgument("the memory of ", shape, " on ", device.name(),
                           " is not at a multiple of ", KILN_ALIGNMENT, " bytes");
  }
  KILN_ASSIGN_OR_RETURN(Ref<Storage> storage, Storage::WrapDevice(device, data, shape.byte_size()));
  auto buffer = Ref<kiln_buffer>::Adopt(new kiln_buffer(device, shape, std::move(storage)));
  buffer->storage_->set_deleter(std::move(deleter));
  return buffer;
}

Ref<kiln_buffer> kiln_buffer::InMemoryOf(const kiln_buffer& donor, const Shape& shape) {
  return Ref<kiln_buffer>::Adopt(new kiln_buffer(donor.device(), shape, donor.storage_));
}

bool kiln_buffer::is_aligned() const { return IsAligned(data_); }

Status kiln_buffer::WaitForValue() {
  if (is_donated()) {
    return FailedPrecondition("the buffer of ", shape_, " has been donated to an execution");
  }
  if (!has_uses_.load(std::memory_order_acquire)) return OkStatus();
  Ref<kiln_event> event = value();
  return event ? event->Wait() : OkStatus();
}

void kiln_buffer::WaitForUses() {
  if (Ref<kiln_event> event = last_use()) event->WaitFor(-1);
}

Ref<kiln_event> kiln_buffer::value() const {
  if (!has_uses_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(mutex_);
  return value_;
}

Ref<kiln_event> kiln_buffer::last_use() const {
  if (!has_uses_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(mutex_);
  return last_use_;
}

void kiln_buffer::AddUse(const Ref<kiln_event>& event, bool writes) {
  Ref<kiln_event> old_value, old_use;  // given back after the lock
  std::lock_guard lock(mutex_);
  old_use = std::exchange(last_use_, event);
  if (writes) old_value = std::exchange(value_, event);
  has_uses_.store(true, std::memory_order_release);
}

void kiln_buffer::SetWritten() {
  if (!has_uses_.load(std::memory_order_acquire)) return;
  Ref<kiln_event> old_value, old_use;
  std::lock_guard lock(mutex_);
  old_value = std::exchange(value_, {});
  if (last_use_ && last_use_->is_ready()) old_use = std::exchange(last_use_, {});
  has_uses_.store(static_cast<bool>(last_use_), std::memory_order_release);
}

Result<Shape> kiln::capi::CheckMemory(kiln_dtype dtype, const int64_t* dims, size_t rank,
                                      const void* data, size_t bytes) {
  KILN_ASSIGN_OR_RETURN(Shape shape, kiln::capi::ShapeOf(dtype, dims, rank));
  if (bytes != static_cast<size_t>(shape.byte_size())) {
    return InvalidArgument("bytes is ", bytes, "; ", shape, " takes ", shape.byte_size());
  }
  if (!data && bytes > 0) return InvalidArgument("data is NULL, with ", bytes, " bytes");
  return shape;
}

namespace {

Result<Ref<kiln_buffer>> Copy(kiln_device& device, const Shape& shape, const void* data) {
  KILN_ASSIGN_OR_RETURN(Ref<kiln_buffer> buffer, kiln_buffer::Allocate(device, shape));
  KILN_RETURN_IF_ERROR(device.device->CopyFromHost(buffer->data(), data, buffer->bytes()));
  return buffer;
}

// From one device's memory to another's: through the host where neither is the host's.
Result<Ref<kiln_buffer>> CopyBuffer(const kiln_buffer& from, kiln_device& to) {
  kiln::runtime::Device& source = *from.device().device;
  if (source.has_host_memory()) return Copy(to, from.shape(), from.data());
  KILN_ASSIGN_OR_RETURN(Ref<kiln_buffer> copy, kiln_buffer::Allocate(to, from.shape()));
  if (&source == to.device.get()) {
    KILN_RETURN_IF_ERROR(source.Copy(copy->data(), from.data(), from.bytes()));
    // Of memory that the device has given out, it knows by itself when it is free.
    if (from.storage().is_callers()) KILN_RETURN_IF_ERROR(source.Synchronise());
  } else if (to.device->has_host_memory()) {
    KILN_RETURN_IF_ERROR(source.CopyToHost(copy->data(), from.data(), from.bytes()));
  } else {
    std::vector<std::byte> host(static_cast<size_t>(from.bytes()));
    KILN_RETURN_IF_ERROR(source.CopyToHost(host.data(), from.data(), from.bytes()));
    KILN_RETURN_IF_ERROR(to.device->CopyFromHost(copy->data(), host.data(), from.bytes()));
  }
  return copy;
}

void WarnOfAlignment(const kiln_buffer& buffer) {
  if (buffer.is_aligned() || buffer.bytes() == 0) return;
  buffer.context().Log(
      KILN_LOG_INFO,
      kiln::Cat("memory of ", buffer.shape(), " is not at a multiple of ", KILN_ALIGNMENT,
                " bytes; as a result it will be copied after each ", "execution"));
}

}  // namespace

kiln_error* kiln_buffer_create(kiln_device* device, kiln_dtype dtype, const int64_t* dims,
                               size_t rank, kiln_buffer** buffer) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_create", {{"device", device}, {"buffer", buffer}}));
    KILN_ASSIGN_OR_RETURN(Shape shape, kiln::capi::ShapeOf(dtype, dims, rank));
    KILN_ASSIGN_OR_RETURN(Ref<kiln_buffer> made, kiln_buffer::Allocate(*device, shape));
    KILN_RETURN_IF_ERROR(device->device->FillZero(made->data(), made->bytes()));
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
    KILN_ASSIGN_OR_RETURN(Shape shape, CheckMemory(dtype, dims, rank, data, bytes));
    KILN_ASSIGN_OR_RETURN(Ref<kiln_buffer> made, Copy(*device, shape, data));
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
    KILN_ASSIGN_OR_RETURN(Shape shape, CheckMemory(dtype, dims, rank, data, bytes));
    Ref<kiln_event> event;
    if (done) event = kiln::capi::MakeRef<kiln_event>(*device->owner);
    Ref<kiln_buffer> made;
    if (device->shares_host_memory) {
      made = kiln_buffer::Wrap(*device, shape, static_cast<std::byte*>(data), nullptr);
      made->storage().set_done(event);
      WarnOfAlignment(*made);
    } else {
      KILN_ASSIGN_OR_RETURN(made, Copy(*device, shape, data));
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
    KILN_ASSIGN_OR_RETURN(Shape shape, CheckMemory(dtype, dims, rank, data, bytes));
    Ref<kiln_buffer> made;
    if (device->shares_host_memory) {
      made = kiln_buffer::Wrap(*device, shape, static_cast<std::byte*>(data),
                               std::make_unique<DeleterCall>(deleter, user_data));
      WarnOfAlignment(*made);
    } else {
      KILN_ASSIGN_OR_RETURN(made, Copy(*device, shape, data));
      deleter(user_data);
    }
    *buffer = HandOver(std::move(made));
    return OkStatus();
  });
}

kiln_error* kiln_buffer_copy_to_host(kiln_buffer* buffer, void* data, size_t bytes) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_copy_to_host", {{"buffer", buffer}}));
    KILN_RETURN_IF_ERROR(CheckMemory(static_cast<kiln_dtype>(buffer->shape().type()),
                                     buffer->dims().data(), buffer->dims().size(), data, bytes)
                             .status());
    KILN_RETURN_IF_ERROR(buffer->WaitForValue());
    KILN_RETURN_IF_ERROR(
        buffer->device().device->CopyToHost(data, buffer->data(), buffer->bytes()));
    buffer->context().RunDeferred();
    return OkStatus();
  });
}

kiln_error* kiln_buffer_copy_to_device(kiln_buffer* buffer, kiln_device* device,
                                       kiln_buffer** copy) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_copy_to_device",
                                 {{"buffer", buffer}, {"device", device}, {"copy", copy}}));
    KILN_RETURN_IF_ERROR(buffer->WaitForValue());
    KILN_ASSIGN_OR_RETURN(Ref<kiln_buffer> made, CopyBuffer(*buffer, *device));
    *copy = HandOver(std::move(made));
    return OkStatus();
  });
}

kiln_error* kiln_buffer_data(kiln_buffer* buffer, const void** data) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_data", {{"buffer", buffer}, {"data", data}}));
    if (!buffer->device().shares_host_memory) {
      return FailedPrecondition("the memory of ", buffer->device().name(),
                                " is not the host's; kiln_buffer_copy_to_host copies it");
    }
    KILN_RETURN_IF_ERROR(buffer->WaitForValue());
    *data = buffer->data();
    return OkStatus();
  });
}

kiln_error* kiln_buffer_shape(const kiln_buffer* buffer, kiln_shape* shape) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_shape", {{"buffer", buffer}, {"shape", shape}}));
    return kiln::capi::WriteStruct(
        "kiln_shape", kiln::capi::DescribeShape(buffer->shape(), buffer->dims()), shape);
  });
}

kiln_device* kiln_buffer_device(const kiln_buffer* buffer) {
  return buffer ? &buffer->device() : nullptr;
}

kiln_error* kiln_buffer_ready(kiln_buffer* buffer, kiln_event** event) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_buffer_ready", {{"buffer", buffer}, {"event", event}}));
    Ref<kiln_event> ready = buffer->value();
    if (!ready) {
      ready = kiln::capi::MakeRef<kiln_event>(buffer->context());
      ready->Finish(OkStatus());
    }
    *event = HandOver(std::move(ready));
    return OkStatus();
  });
}

void kiln_buffer_retain(kiln_buffer* buffer) { kiln::capi::RetainHandle(buffer); }

void kiln_buffer_release(kiln_buffer* buffer) { kiln::capi::ReleaseHandle(buffer); }

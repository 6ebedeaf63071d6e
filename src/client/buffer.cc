#include "client/buffer.h"

#include <utility>

#include "program/program.h"

namespace kiln::client {
namespace {

bool IsAligned(const std::byte* data) {
  return reinterpret_cast<uintptr_t>(data) % program::kAlignment == 0;
}

}  // namespace

Buffer::Buffer(Device& device, const Shape& shape, Ref<Storage> storage)
    : client_(Ref<Client>::Share(&device.client())),
      device_(device),
      shape_(shape),
      dims_(shape.dims()),
      storage_(std::move(storage)),
      data_(storage_->data()) {}

Result<Ref<Buffer>> Buffer::Allocate(Device& device, const Shape& shape) {
  KILN_ASSIGN_OR_RETURN(Ref<Storage> storage, Storage::Allocate(device, shape.byte_size()));
  return Ref<Buffer>::Adopt(new Buffer(device, shape, std::move(storage)));
}

Ref<Buffer> Buffer::Wrap(Device& device, const Shape& shape, std::byte* data,
                         std::unique_ptr<Deferred> deleter) {
  auto buffer =
      Ref<Buffer>::Adopt(new Buffer(device, shape, Storage::Wrap(device, data, shape.byte_size())));
  buffer->storage_->set_deleter(std::move(deleter));
  return buffer;
}

Result<Ref<Buffer>> Buffer::WrapDevice(Device& device, const Shape& shape, std::byte* data,
                                       std::unique_ptr<Deferred>& deleter) {
  if (!IsAligned(data)) {
    return InvalidArgument("the memory of ", shape, " on ", device.name(),
                           " is not at a multiple of ", program::kAlignment, " bytes");
  }
  KILN_ASSIGN_OR_RETURN(Ref<Storage> storage, Storage::WrapDevice(device, data, shape.byte_size()));
  auto buffer = Ref<Buffer>::Adopt(new Buffer(device, shape, std::move(storage)));
  buffer->storage_->set_deleter(std::move(deleter));
  return buffer;
}

Ref<Buffer> Buffer::InMemoryOf(const Buffer& donor, const Shape& shape) {
  return Ref<Buffer>::Adopt(new Buffer(donor.device(), shape, donor.storage_));
}

bool Buffer::is_aligned() const { return IsAligned(data_); }

Status Buffer::CheckNotDonated() const {
  if (!is_donated()) return OkStatus();
  return FailedPrecondition("the buffer of ", shape_, " has been donated to an execution");
}

Status Buffer::WaitForValue() {
  KILN_RETURN_IF_ERROR(CheckNotDonated());
  if (!has_uses_.load(std::memory_order_acquire)) return OkStatus();
  Ref<Event> event = value();
  return event ? event->Wait() : OkStatus();
}

void Buffer::WaitForUses() {
  if (Ref<Event> event = last_use()) event->WaitFor(-1);
}

Ref<Event> Buffer::value() const {
  if (!has_uses_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(mutex_);
  return value_;
}

Ref<Event> Buffer::last_use() const {
  if (!has_uses_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(mutex_);
  return last_use_;
}

void Buffer::AddUse(const Ref<Event>& event, bool writes) {
  Ref<Event> old_value, old_use;  // given back after the lock
  std::lock_guard lock(mutex_);
  old_use = std::exchange(last_use_, event);
  if (writes) old_value = std::exchange(value_, event);
  has_uses_.store(true, std::memory_order_release);
}

void Buffer::SetWritten() {
  if (!has_uses_.load(std::memory_order_acquire)) return;
  Ref<Event> old_value, old_use;
  std::lock_guard lock(mutex_);
  old_value = std::exchange(value_, {});
  if (last_use_ && last_use_->is_ready()) old_use = std::exchange(last_use_, {});
  has_uses_.store(static_cast<bool>(last_use_), std::memory_order_release);
}

}  // namespace kiln::client

#include "client/buffer.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "program/program.h"

namespace kiln::client {
namespace {

bool IsAligned(const std::byte* data) {
  return reinterpret_cast<uintptr_t>(data) % program::kAlignment == 0;
}

// Finishes `result` after two events, with the first failure of them.
class FinishAfter : public Event::Callback {
 public:
  FinishAfter(Ref<Event> result, Ref<Event> other)
      : result_(std::move(result)), other_(std::move(other)) {}
  // Created in advance, so that the call cannot fail.
  void set_last(std::unique_ptr<FinishAfter> last) { last_ = std::move(last); }
  void Call(const Status& status) noexcept override {
    if (status.ok() && last_) {
      other_->OnReady(std::move(last_));
    } else {
      result_->Finish(status);
    }
  }

 private:
  const Ref<Event> result_, other_;
  std::unique_ptr<FinishAfter> last_;
};

}  // namespace

Buffer::Buffer(Device& device, const Shape& shape, Ref<Storage> storage)
    : client_(Ref<Client>::Share(&device.client())),
      device_(device),
      shape_(shape),
      dims_(shape.dims()),
      storage_(std::move(storage)) {}

Result<Ref<Buffer>> Buffer::Allocate(Device& device, const Shape& shape) {
  KILN_ASSIGN_OR_RETURN(Ref<Storage> storage, Storage::Allocate(device, shape.byte_size()));
  return Ref<Buffer>::Adopt(new Buffer(device, shape, std::move(storage)));
}

Result<Ref<Buffer>> Buffer::Reserve(Device& device, const Shape& shape) {
  // Small memory costs less than a failure to allocate that is found late.
  constexpr int64_t kLarge = int64_t{1} << 20;
  if (shape.byte_size() < kLarge || !device.runtime().has_host_memory() ||
      !device.client().runs_asynchronously()) {
    return Allocate(device, shape);
  }
  return Ref<Buffer>::Adopt(new Buffer(device, shape, Storage::Reserve(device, shape.byte_size())));
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

bool Buffer::is_aligned() const { return IsAligned(data()); }

Status Buffer::CheckNotDonated() const {
  if (!is_donated()) return OkStatus();
  return FailedPrecondition("the buffer of ", shape_, " has been donated to an execution");
}

bool Buffer::Donate() {
  if (donated_.exchange(true)) return false;
  if (!is_frozen()) return true;
  Undonate();
  return false;
}

bool Buffer::Freeze() {
  frozen_.fetch_add(1);
  if (!is_donated()) return true;
  Thaw();
  return false;
}

bool Buffer::Pin() {
  pins_.fetch_add(1);
  if (!is_donated()) return true;
  Unpin();
  return false;
}

void Buffer::WaitForPins() const {
  // A moment, except beside a synchronous execution or copy of another thread's.
  constexpr int kYields = 100;
  for (int i = 0; pins_.load() != 0; ++i) {
    if (i < kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

Status Buffer::WaitForValue() {
  KILN_RETURN_IF_ERROR(CheckNotDonated());
  if (!has_uses_.load(std::memory_order_acquire)) return OkStatus();
  Ref<Event> event = value();
  return event ? event->Wait() : OkStatus();
}

void Buffer::WaitForUses() {
  std::vector<Ref<Event>> uses;
  AppendUses(uses);
  for (const Ref<Event>& use : uses) use->WaitFor(-1);
}

Ref<Event> Buffer::value() const {
  if (!has_uses_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(mutex_);
  return value_;
}

void Buffer::AppendUses(std::vector<Ref<Event>>& uses) const {
  if (!has_uses_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(mutex_);
  for (const Ref<Event>& use : uses_) {
    if (!use->is_ready()) uses.push_back(use);
  }
}

bool Buffer::is_in_use() const {
  if (!has_uses_.load(std::memory_order_acquire)) return false;
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(uses_, [](const Ref<Event>& use) { return !use->is_ready(); });
}

void Buffer::PrepareUse() {
  std::lock_guard lock(mutex_);
  std::erase_if(uses_, [](const Ref<Event>& use) { return use->is_ready(); });
  const size_t needed = uses_.size() + prepared_ + 1;
  if (needed > uses_.capacity()) uses_.reserve(2 * needed);
  ++prepared_;
}

void Buffer::AddUse(const Ref<Event>& event, bool writes) noexcept {
  Ref<Event> old_value;  // given back after the lock
  std::lock_guard lock(mutex_);
  --prepared_;
  uses_.push_back(event);
  if (writes) old_value = std::exchange(value_, event);
  has_uses_.store(true, std::memory_order_release);
}

void Buffer::Delay(const Ref<Event>& event) {
  Ref<Event> both = event;
  if (Ref<Event> own = value()) {
    both = MakeRef<Event>(*client_);
    auto first = std::make_unique<FinishAfter>(both, event);
    first->set_last(std::make_unique<FinishAfter>(both, Ref<Event>()));
    PrepareUse();
    own->OnReady(std::move(first));
  } else {
    PrepareUse();
  }
  AddUse(both, true);
}

void Buffer::SetWritten() {
  if (!has_uses_.load(std::memory_order_acquire)) return;
  Ref<Event> old_value;
  std::lock_guard lock(mutex_);
  old_value = std::exchange(value_, {});
  std::erase_if(uses_, [](const Ref<Event>& use) { return use->is_ready(); });
  has_uses_.store(!uses_.empty(), std::memory_order_release);
}

}  // namespace kiln::client

// Arrays on a device, and the queued work that uses them.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "base/ref.h"
#include "base/status.h"
#include "client/client.h"
#include "client/event.h"
#include "client/storage.h"
#include "tensor/shape.h"

namespace kiln::client {

class Buffer : public Counted<Buffer> {
 public:
  // Uninitialised device memory.
  static Result<Ref<Buffer>> Allocate(Device& device, const Shape& shape);
  // The same, but large memory of the host is there only from the first write on.
  static Result<Ref<Buffer>> Reserve(Device& device, const Shape& shape);
  // Memory of the user. `deleter` may be null.
  static Ref<Buffer> Wrap(Device& device, const Shape& shape, std::byte* data,
                          std::unique_ptr<Deferred> deleter);
  // The same for device memory: INVALID_ARGUMENT for other memory, or if not aligned. The deleter
  // is moved from on success only.
  static Result<Ref<Buffer>> WrapDevice(Device& device, const Shape& shape, std::byte* data,
                                        std::unique_ptr<Deferred>& deleter);
  // A result in the memory of a donated buffer.
  static Ref<Buffer> InMemoryOf(const Buffer& donor, const Shape& shape);

  Client& client() const { return *client_; }
  Device& device() const { return device_; }
  const Shape& shape() const { return shape_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  Storage& storage() const { return *storage_; }
  // Null for reserved memory that has not been written.
  std::byte* data() const { return storage_->data(); }
  // The address, before a write or a value.
  Result<std::byte*> Materialise() {
    KILN_RETURN_IF_ERROR(storage_->Materialise());
    return data();
  }
  int64_t bytes() const { return storage_->bytes(); }
  // Whether it is aligned to program::kAlignment.
  bool is_aligned() const;

  // Marks it as donated, and unusable; false if it was already, or is frozen.
  bool Donate();
  void Undonate() { donated_.store(false); }
  bool is_donated() const { return donated_.load(); }
  // FAILED_PRECONDITION if it has been donated.
  Status CheckNotDonated() const;
  // Bound as a frozen argument: it can be neither donated nor written until as many calls of Thaw.
  // False if it has been donated.
  bool Freeze();
  void Thaw() { frozen_.fetch_sub(1); }
  bool is_frozen() const { return frozen_.load() != 0; }
  // A reader whose use is not recorded yet, or never will be: who has donated the buffer waits for
  // its end. False if the buffer has been donated.
  bool Pin();
  void Unpin() { pins_.fetch_sub(1); }
  // After Donate: waits until the readers have recorded their uses, or ended.
  void WaitForPins() const;
  // Waits for the queued work that defines the value, if any; its failure if it failed.
  // FAILED_PRECONDITION if the buffer has been donated.
  Status WaitForValue();
  // Waits until no queued work reads or writes it.
  void WaitForUses();
  // The event of the queued work that defines the value, or null.
  Ref<Event> value() const;
  // Adds the events of the queued work that reads or writes it.
  void AppendUses(std::vector<Ref<Event>>& uses) const;
  // Whether such work has not ended.
  bool is_in_use() const;
  // Records queued work that reads or writes the buffer. Each AddUse needs a PrepareUse before,
  // which may throw.
  void PrepareUse();
  void AddUse(const Ref<Event>& event, bool writes) noexcept;
  // Makes the value wait for an event, too: the later users of the value.
  void Delay(const Ref<Event>& event);
  // Records a write by a completed execution.
  void SetWritten();

 private:
  Buffer(Device& device, const Shape& shape, Ref<Storage> storage);

  Ref<Client> client_;
  Device& device_;
  const Shape shape_;
  const std::vector<int64_t> dims_;
  const Ref<Storage> storage_;
  // Each side writes its own and then reads the other's, so that one of them sees the other.
  std::atomic<bool> donated_{false};
  std::atomic<int32_t> pins_{0}, frozen_{0};

  // Whether one of the events below is set, so that most calls need no lock.
  std::atomic<bool> has_uses_{false};
  mutable std::mutex mutex_;
  Ref<Event> value_;
  std::vector<Ref<Event>> uses_;  // some of them may have ended
  size_t prepared_ = 0;
};

}  // namespace kiln::client

// Arrays on a device, and the queued work that they take part in.
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
  // Memory of the device's, its contents undefined.
  static Result<Ref<Buffer>> Allocate(Device& device, const Shape& shape);
  // Memory of the user's. `deleter` may be null.
  static Ref<Buffer> Wrap(Device& device, const Shape& shape, std::byte* data,
                          std::unique_ptr<Deferred> deleter);
  // The same for memory of the device: INVALID_ARGUMENT where it is not, or not aligned. The
  // deleter is taken over with success only.
  static Result<Ref<Buffer>> WrapDevice(Device& device, const Shape& shape, std::byte* data,
                                        std::unique_ptr<Deferred>& deleter);
  // A result in the memory of a donated buffer.
  static Ref<Buffer> InMemoryOf(const Buffer& donor, const Shape& shape);

  Client& client() const { return *client_; }
  Device& device() const { return device_; }
  const Shape& shape() const { return shape_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  Storage& storage() const { return *storage_; }
  std::byte* data() const { return data_; }
  int64_t bytes() const { return storage_->bytes(); }
  // Whether it is at a multiple of program::kAlignment.
  bool is_aligned() const;

  // From now on it cannot be used; false where that is so already.
  bool Donate() { return !donated_.exchange(true); }
  void Undonate() { donated_.store(false); }
  bool is_donated() const { return donated_.load(); }
  // FAILED_PRECONDITION where it has been donated.
  Status CheckNotDonated() const;
  // Waits for the queued work that makes the value, if there is any; its failure if it failed.
  // FAILED_PRECONDITION where the buffer has been donated.
  Status WaitForValue();
  // Waits until no queued work reads or writes it.
  void WaitForUses();
  // The event of the queued work that makes the value, or null.
  Ref<Event> value() const;
  // The event of the last queued work that reads or writes it, or null.
  Ref<Event> last_use() const;
  // Work has been queued that reads it, or writes it: in the queue of its device, but for the
  // first, which may be a copy from another one.
  void AddUse(const Ref<Event>& event, bool writes);
  // It has been written by an execution that is over.
  void SetWritten();

 private:
  Buffer(Device& device, const Shape& shape, Ref<Storage> storage);

  Ref<Client> client_;
  Device& device_;
  const Shape shape_;
  const std::vector<int64_t> dims_;
  const Ref<Storage> storage_;
  std::byte* const data_;
  std::atomic<bool> donated_{false};

  // Whether one of the events below is set, so that most calls need not lock.
  std::atomic<bool> has_uses_{false};
  mutable std::mutex mutex_;
  // The work of a queue is done in order, and waits for uses in other queues: the last one that
  // touches a buffer is the last to end.
  Ref<Event> value_, last_use_;
};

}  // namespace kiln::client

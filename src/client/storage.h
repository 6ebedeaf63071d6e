// The memory of buffers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/ref.h"
#include "base/status.h"
#include "client/client.h"
#include "client/event.h"

namespace kiln::client {

// Memory freed with its last buffer. A donated buffer and the result in its place share it, without
// knowing each other: a value donated a million times is one storage. Its buffers keep the client
// alive.
class Storage : public Counted<Storage> {
 public:
  // Uninitialised device memory.
  static Result<Ref<Storage>> Allocate(Device& device, int64_t bytes);
  // The same, but the memory is there only after Materialise: a queue of many runs does not hold
  // the memory of all their results.
  static Ref<Storage> Reserve(Device& device, int64_t bytes);
  // Memory of the user, on the host or on the device.
  static Ref<Storage> Wrap(Device& device, std::byte* data, int64_t bytes);
  static Result<Ref<Storage>> WrapDevice(Device& device, std::byte* data, int64_t bytes);
  ~Storage();

  // Before a write, or to know the address.
  Status Materialise();
  // Null for reserved memory before Materialise.
  std::byte* data() const { return data_.load(std::memory_order_acquire); }
  int64_t bytes() const { return bytes_; }
  // Whether its release may free it immediately, without the device.
  bool is_callers() const { return is_registered_; }
  // Whether the library has allocated it, and will free it.
  bool is_owned() const { return is_owned_; }
  bool is_reserved() const { return is_reserved_; }
  // The deleter of the user's memory; may be null. Set while it is not shared, as the two below.
  void set_deleter(std::unique_ptr<Deferred> deleter) { deleter_ = std::move(deleter); }
  // Ready at the end of the library's use of the memory.
  void set_done(Ref<Event> done) { done_ = std::move(done); }
  // Executions must not write it.
  void set_read_only(bool read_only = true) { is_read_only_ = read_only; }
  bool is_read_only() const { return is_read_only_; }

 private:
  Storage(Device& device, std::byte* data, int64_t bytes)
      : device_(device), data_(data), bytes_(bytes) {}

  Device& device_;
  std::atomic<std::byte*> data_;
  const int64_t bytes_;
  bool is_owned_ = false, is_reserved_ = false, is_registered_ = false, is_read_only_ = false;
  std::unique_ptr<Deferred> deleter_;
  Ref<Event> done_;
};

}  // namespace kiln::client

// Arrays on a device, and which queued executions they take part in.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "capi/context.h"
#include "capi/event.h"
#include "capi/handle.h"
#include "capi/storage.h"
#include "kiln/buffer.h"
#include "tensor/shape.h"

namespace kiln::capi {

// The user's function that frees memory.
class DeleterCall : public Deferred {
 public:
  DeleterCall(void (*function)(void*), void* user_data)
      : function_(function), user_data_(user_data) {}
  void Call() noexcept override { function_(user_data_); }

 private:
  void (*function_)(void*);
  void* user_data_;
};

// The shape of `bytes` bytes at `data`.
Result<Shape> CheckMemory(kiln_dtype dtype, const int64_t* dims, size_t rank, const void* data,
                          size_t bytes);

}  // namespace kiln::capi

struct kiln_buffer : kiln::capi::Counted<kiln_buffer> {
 public:
  // Memory of the context's allocator, its contents undefined.
  static kiln::Result<kiln::capi::Ref<kiln_buffer>> Allocate(kiln_device& device,
                                                             const kiln::Shape& shape);
  // Memory of the user's. `deleter` may be null.
  static kiln::capi::Ref<kiln_buffer> Wrap(kiln_device& device, const kiln::Shape& shape,
                                           std::byte* data,
                                           std::unique_ptr<kiln::capi::Deferred> deleter);
  // The same for memory of the device: INVALID_ARGUMENT where it is not, or not aligned. The
  // deleter is taken over with success only.
  static kiln::Result<kiln::capi::Ref<kiln_buffer>> WrapDevice(
      kiln_device& device, const kiln::Shape& shape, std::byte* data,
      std::unique_ptr<kiln::capi::Deferred>& deleter);
  // A result in the memory of a donated buffer.
  static kiln::capi::Ref<kiln_buffer> InMemoryOf(const kiln_buffer& donor,
                                                 const kiln::Shape& shape);

  kiln_context& context() const { return *context_; }
  kiln_device& device() const { return device_; }
  const kiln::Shape& shape() const { return shape_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  kiln::capi::Storage& storage() const { return *storage_; }
  std::byte* data() const { return data_; }
  int64_t bytes() const { return storage_->bytes(); }
  bool is_aligned() const;

  // From now on it cannot be used; false where that is so already.
  bool Donate() { return !donated_.exchange(true); }
  void Undonate() { donated_.store(false); }
  bool is_donated() const { return donated_.load(); }
  // Waits for the queued execution that makes the value, if there is one; its failure if it failed.
  // FAILED_PRECONDITION where the buffer has been donated.
  kiln::Status WaitForValue();
  // Waits until no queued execution reads or writes it.
  void WaitForUses();
  // The event of the queued execution that makes the value, or null.
  kiln::capi::Ref<kiln_event> value() const;
  // The event of the last queued execution that reads or writes it, or null.
  kiln::capi::Ref<kiln_event> last_use() const;
  // An execution has been queued that reads it, or writes it.
  void AddUse(const kiln::capi::Ref<kiln_event>& event, bool writes);
  // It has been written by an execution that is over.
  void SetWritten();

 private:
  kiln_buffer(kiln_device& device, const kiln::Shape& shape,
              kiln::capi::Ref<kiln::capi::Storage> storage);

  kiln::capi::Ref<kiln_context> context_;
  kiln_device& device_;
  const kiln::Shape shape_;
  const std::vector<int64_t> dims_;
  const kiln::capi::Ref<kiln::capi::Storage> storage_;
  std::byte* const data_;
  std::atomic<bool> donated_{false};

  // Whether one of the events below is set, so that most calls need not lock.
  std::atomic<bool> has_uses_{false};
  mutable std::mutex mutex_;
  // Queued executions of a context run in order: the last one that touches a buffer is the last to
  // end.
  kiln::capi::Ref<kiln_event> value_, last_use_;
};

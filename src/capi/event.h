// Completion of asynchronous work.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "capi/context.h"
#include "capi/handle.h"
#include "kiln/event.h"

struct kiln_event : kiln::capi::Counted<kiln_event> {
 public:
  explicit kiln_event(kiln_context& context)
      : context_(kiln::capi::Ref<kiln_context>::Share(&context)) {}
  ~kiln_event();

  kiln_context& context() const { return *context_; }
  bool is_ready() const { return ready_.load(std::memory_order_acquire); }
  // How the work ended; only once it is ready.
  const kiln::Status& status() const { return status_; }

  // The work is in its device's order: what the device is asked for from now on comes after it.
  void SetStarted() noexcept;
  void WaitForStart();
  // The end of the work: once.
  void Finish(kiln::Status status) noexcept;
  // Until it is ready; false when `timeout_ns` (negative: none) ran out before.
  bool WaitFor(int64_t timeout_ns);
  kiln::Status Wait() {
    WaitFor(-1);
    return status_;
  }

  struct Callback {
    void (*function)(void* user_data, const kiln_error* error);
    void* user_data;
    void (*destroy)(void* user_data);
  };
  void OnReady(Callback callback);

 private:
  void Call(const Callback& callback) const noexcept;

  kiln::capi::Ref<kiln_context> context_;
  std::atomic<bool> ready_{false};
  bool started_ = false;  // under the mutex
  std::mutex mutex_;
  std::condition_variable wake_;
  kiln::Status status_;
  std::vector<Callback> callbacks_;
};

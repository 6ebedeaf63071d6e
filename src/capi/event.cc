#include "capi/event.h"

#include <chrono>

#include "capi/error.h"

kiln_event::~kiln_event() {
  for (const Callback& callback : callbacks_) {
    if (callback.destroy) callback.destroy(callback.user_data);
  }
}

void kiln_event::Finish(kiln::Status status) noexcept {
  std::vector<Callback> callbacks;
  {
    std::lock_guard lock(mutex_);
    status_ = std::move(status);
    callbacks.swap(callbacks_);
    ready_.store(true, std::memory_order_release);
  }
  wake_.notify_all();
  for (const Callback& callback : callbacks) Call(callback);
}

void kiln_event::SetStarted() noexcept {
  {
    std::lock_guard lock(mutex_);
    started_ = true;
  }
  wake_.notify_all();
}

void kiln_event::WaitForStart() {
  if (is_ready()) return;
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [&] { return started_ || is_ready(); });
}

bool kiln_event::WaitFor(int64_t timeout_ns) {
  if (is_ready()) return true;
  std::unique_lock lock(mutex_);
  auto ready = [&] { return is_ready(); };
  if (timeout_ns < 0) {
    wake_.wait(lock, ready);
    return true;
  }
  // A time that would overflow the clock is as good as none.
  constexpr int64_t kCentury = int64_t{100} * 365 * 24 * 3600 * 1'000'000'000;
  return wake_.wait_for(lock, std::chrono::nanoseconds(std::min(timeout_ns, kCentury)), ready);
}

void kiln_event::OnReady(Callback callback) {
  {
    std::lock_guard lock(mutex_);
    if (!is_ready()) {
      callbacks_.push_back(callback);
      return;
    }
  }
  Call(callback);
}

void kiln_event::Call(const Callback& callback) const noexcept {
  kiln_error* error = kiln::capi::ToError(status_);
  callback.function(callback.user_data, error);
  kiln_error_release(error);
  if (callback.destroy) callback.destroy(callback.user_data);
}

using kiln::Status;
using kiln::capi::Guard;
using kiln::capi::NotNull;

kiln_error* kiln_event_wait(kiln_event* event, int64_t timeout_ns) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_event_wait", {{"event", event}}));
    bool ready = event->WaitFor(timeout_ns);
    event->context().RunDeferred();
    if (!ready) return Status(kiln::Code::kDeadlineExceeded, "the work is still going on");
    return event->status();
  });
}

int32_t kiln_event_is_ready(const kiln_event* event) {
  return event && (event->is_ready() || event->context().is_before_fork()) ? 1 : 0;
}

kiln_error* kiln_event_on_ready(kiln_event* event,
                                void (*callback)(void* user_data, const kiln_error* error),
                                void* user_data, void (*destroy)(void* user_data)) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_event_on_ready",
                {{"event", event}, {"callback", reinterpret_cast<const void*>(callback)}}));
    if (!event->context().callbacks_from_any_thread()) {
      return kiln::FailedPrecondition(
          "kiln_event_on_ready: the context was made without callbacks_from_any_thread");
    }
    event->OnReady({callback, user_data, destroy});
    return kiln::OkStatus();
  });
}

void kiln_event_retain(kiln_event* event) { kiln::capi::RetainHandle(event); }

void kiln_event_release(kiln_event* event) { kiln::capi::ReleaseHandle(event); }

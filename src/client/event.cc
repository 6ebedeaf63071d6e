#include "client/event.h"

#include <algorithm>
#include <chrono>

#include "client/client.h"

namespace kiln::client {

Event::Event(Client& client, const Queue* queue)
    : client_(Ref<Client>::Share(&client)), queue_(queue) {}

Event::~Event() = default;

void Event::Finish(Status status) noexcept {
  UniqueList<Callback> callbacks;
  {
    std::lock_guard lock(mutex_);
    status_ = std::move(status);
    callbacks.Swap(callbacks_);
    ready_.store(true, std::memory_order_release);
  }
  wake_.notify_all();
  while (std::unique_ptr<Callback> callback = callbacks.TakeFirst()) callback->Call(status_);
}

void Event::SetStarted() noexcept {
  {
    std::lock_guard lock(mutex_);
    started_.store(true, std::memory_order_release);
  }
  wake_.notify_all();
}

void Event::WaitForStart(const Queue* queue) {
  if (is_ready()) return;
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [&] { return is_ready() || (queue_ == queue && started_); });
}

bool Event::WaitFor(int64_t timeout_ns) {
  if (is_ready()) return true;
  std::unique_lock lock(mutex_);
  auto ready = [&] { return is_ready(); };
  if (timeout_ns < 0) {
    wake_.wait(lock, ready);
    return true;
  }
  // A time that would overflow the clock counts as no limit.
  constexpr int64_t kCentury = int64_t{100} * 365 * 24 * 3600 * 1'000'000'000;
  return wake_.wait_for(lock, std::chrono::nanoseconds(std::min(timeout_ns, kCentury)), ready);
}

void Event::OnReady(std::unique_ptr<Callback> callback) noexcept {
  {
    std::lock_guard lock(mutex_);
    if (!is_ready()) {
      callbacks_.Append(std::move(callback));
      return;
    }
  }
  callback->Call(status_);
}

}  // namespace kiln::client

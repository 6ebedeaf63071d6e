// Completion of asynchronous work.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/ref.h"
#include "base/status.h"
#include "base/unique_list.h"

namespace kiln::client {

class Client;
class Queue;

class Event : public Counted<Event> {
 public:
  // An event for work of `queue`, which may be null.
  explicit Event(Client& client, const Queue* queue = nullptr);
  ~Event();

  Client& client() const { return *client_; }
  const Queue* queue() const { return queue_; }
  bool is_ready() const { return ready_.load(std::memory_order_acquire); }
  // The outcome of the work; only once it is ready.
  const Status& status() const { return status_; }

  // The work is submitted to an asynchronous device: later work of its queue comes after it.
  void SetStarted() noexcept;
  bool IsStartedIn(const Queue& queue) const {
    return queue_ == &queue && started_.load(std::memory_order_acquire);
  }
  // Waits until work of `queue` comes after this work: for its start in that queue, or its end.
  void WaitForStart(const Queue* queue);
  // The end of the work: once.
  void Finish(Status status) noexcept;
  // The user will finish it, instead of work of the library.
  void LeaveToUser() { is_users_.store(true, std::memory_order_release); }
  // Whether the user may finish it now: once.
  bool TakeFromUser() { return is_users_.exchange(false); }
  // Waits until it is ready; false if `timeout_ns` (negative: none) ran out before.
  bool WaitFor(int64_t timeout_ns);
  Status Wait() {
    WaitFor(-1);
    return status_;
  }

  class Callback {
   public:
    virtual ~Callback() = default;
    virtual void Call(const Status& status) noexcept = 0;

    std::unique_ptr<Callback> next;
  };
  // Called once: immediately on this thread if the work has ended, otherwise on the thread that
  // ends it. Destroyed without a call if the event is destroyed first.
  void OnReady(std::unique_ptr<Callback> callback) noexcept;

 private:
  Ref<Client> client_;
  const Queue* const queue_;
  std::atomic<bool> ready_{false};
  std::atomic<bool> started_{false}, is_users_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  Status status_;
  UniqueList<Callback> callbacks_;
};

}  // namespace kiln::client

// Threads that take turns: one runs at a time, until it waits or ends; then the next runnable one
// continues, in the order of their numbers. Shared data therefore need no locks, execution is
// deterministic, and deadlocks are detected at once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>

#include "base/status.h"

namespace kiln::interp {

class Turns {
 public:
  explicit Turns(int64_t count) : members_(static_cast<size_t>(count)) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Runs body(0), body(1) and so on, each to its end, and returns the first failure. body(0) runs
  // on the caller's thread. After a failure no other one begins, and waiting ones continue.
  Status Run(const std::function<Status(int64_t)>& body);

  // The functions below are for the thread with the turn, by its number.

  // Yields the turn until another thread makes `ready` hold. Fails after a failure of any thread; a
  // deadlock is a failure, too, that lists the awaited events.
  Status Wait(int64_t number, const std::function<bool()>& ready,
              const std::function<std::string()>& what);
  // The first failure: later work is void.
  const Status& failure() const { return failure_; }
  // Runs a function on the thread that called Run.
  Status OnCaller(int64_t number, const std::function<Status()>& errand);

 private:
  static constexpr int64_t kNobody = -1;

  struct Member {
    std::condition_variable wake;
    // Null: it is runnable.
    const std::function<bool()>* ready = nullptr;
    const std::function<std::string()>* waits_for = nullptr;
    bool ended = false;
  };

  Member& member(int64_t number) { return members_[static_cast<size_t>(number)]; }
  void Act(int64_t number, const std::function<Status(int64_t)>& body);
  int64_t Next(int64_t from);
  Status AllWait() const;
  void GiveTurn(int64_t from);
  // Waits for `turn`, as a member; the caller's thread does errands meanwhile.
  void AwaitTurn(int64_t number, int64_t turn);

  std::mutex mutex_;
  // Under the mutex, so that the next thread sees all earlier writes.
  int64_t turn_ = 0;
  const std::function<void()>* errand_ = nullptr;
  // Accessed only by the thread with the turn, except `wake`.
  std::deque<Member> members_;
  Status failure_;
};

}  // namespace kiln::interp

// Threads that take turns: of several one runs at a time, until it waits for something or ends;
// then the next one that can go on does, in the order of their numbers. So what they share needs no
// locks of its own, what they do is the same each time, and that all of them wait is seen at once.
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

  // Runs body(0), body(1) and so on, each to its end, and gives the first failure. body(0) runs on
  // the caller's thread. Once one has failed no other one begins, and those that wait go on.
  Status Run(const std::function<Status(int64_t)>& body);

  // All below is for the one whose turn it is, by its number.

  // Gives the turn away until `ready` holds, which another one brings about. Fails once one has
  // failed; that they all wait is a failure too, which says what each of them waits for.
  Status Wait(int64_t number, const std::function<bool()>& ready,
              const std::function<std::string()>& what);
  // The first failure: after it nothing that is done is of use.
  const Status& failure() const { return failure_; }
  // Runs a function on the thread that has called Run.
  Status OnCaller(int64_t number, const std::function<Status()>& errand);

 private:
  static constexpr int64_t kNobody = -1;

  struct Member {
    std::condition_variable wake;
    // Null: it can go on.
    const std::function<bool()>* ready = nullptr;
    const std::function<std::string()>* waits_for = nullptr;
    bool ended = false;
  };

  Member& member(int64_t number) { return members_[static_cast<size_t>(number)]; }
  void Act(int64_t number, const std::function<Status(int64_t)>& body);
  int64_t Next(int64_t from);
  Status AllWait() const;
  void GiveTurn(int64_t from);
  // Until `turn` has come, as a member; the caller's thread does errands meanwhile.
  void AwaitTurn(int64_t number, int64_t turn);

  std::mutex mutex_;
  // Under the mutex; who the turn is given to sees what was done before.
  int64_t turn_ = 0;
  const std::function<void()>* errand_ = nullptr;
  // Touched by the one whose turn it is alone, but for `wake`.
  std::deque<Member> members_;
  Status failure_;
};

}  // namespace kiln::interp

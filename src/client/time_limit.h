// Time limits of executions.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>

#include "base/status.h"
#include "base/thread.h"

namespace kiln::client {

class TimeLimits;

// The limit of one execution: a flag for its programs, set at the deadline, and soon after the
// caller's own flag.
class TimeLimit {
 public:
  using Clock = std::chrono::steady_clock;

  // `cancel`, the caller's flag, may be null; it and `limits` outlive this.
  TimeLimit(TimeLimits& limits, const int32_t* cancel, Clock::time_point deadline);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  // Polled by programs: not 0 ends them with CANCELLED.
  const int32_t* flag() const { return &flag_; }
  // The outcome of the execution: DEADLINE_EXCEEDED if the limit cancelled it.
  Status Explain(Status status) const;

 private:
  friend class TimeLimits;
  // Under the mutex of `limits_`.
  void Check(Clock::time_point now);

  TimeLimits& limits_;
  const int32_t* const cancel_;
  const Clock::time_point deadline_;
  int32_t flag_ = 0;  // atomic: 1 cancelled by the caller, 2 by the deadline
  std::list<TimeLimit*>::iterator place_;
};

// The limits of a client, and the thread that watches them; it begins with the first limit.
class TimeLimits {
 public:
  TimeLimits() = default;
  // There are no limits any more.
  ~TimeLimits();
  TimeLimits(const TimeLimits&) = delete;
  TimeLimits& operator=(const TimeLimits&) = delete;

 private:
  friend class TimeLimit;
  void Watch();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::list<TimeLimit*> limits_;
  bool stop_ = false;
  Thread thread_;
};

}  // namespace kiln::client

#include "client/time_limit.h"

#include <algorithm>

#include "base/trace.h"

namespace kiln::client {
namespace {

// How often flags of callers are read.
constexpr std::chrono::milliseconds kPoll(5);

}  // namespace

TimeLimit::TimeLimit(TimeLimits& limits, const int32_t* cancel, Clock::time_point deadline)
    : limits_(limits), cancel_(cancel), deadline_(deadline) {
  std::lock_guard lock(limits_.mutex_);
  if (!limits_.thread_.IsJoinable()) {
    limits_.thread_ = Thread([watched = &limits_] { watched->Watch(); });
  }
  limits_.limits_.push_back(this);
  place_ = std::prev(limits_.limits_.end());
  Check(Clock::now());
  limits_.wake_.notify_one();
}

TimeLimit::~TimeLimit() {
  std::lock_guard lock(limits_.mutex_);
  limits_.limits_.erase(place_);
}

void TimeLimit::Check(Clock::time_point now) {
  if (flag_ != 0) return;
  int32_t value = 0;
  if (now >= deadline_) value = 2;
  if (cancel_ && __atomic_load_n(cancel_, __ATOMIC_RELAXED) != 0) value = 1;
  if (value != 0) __atomic_store_n(&flag_, value, __ATOMIC_RELAXED);
}

Status TimeLimit::Explain(Status status) const {
  if (status.code() != Code::kCancelled || __atomic_load_n(&flag_, __ATOMIC_RELAXED) != 2) {
    return status;
  }
  return Status(Code::kDeadlineExceeded, "the execution has exceeded its time limit");
}

TimeLimits::~TimeLimits() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.IsJoinable()) thread_.Join();
}

void TimeLimits::Watch() {
  TraceSink::NameThisThread("kiln time limits", 0);
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const TimeLimit::Clock::time_point now = TimeLimit::Clock::now();
    TimeLimit::Clock::time_point next = TimeLimit::Clock::time_point::max();
    for (TimeLimit* limit : limits_) {
      limit->Check(now);
      if (limit->flag_ != 0) continue;
      next = std::min(next,
                      limit->cancel_ ? std::min(limit->deadline_, now + kPoll) : limit->deadline_);
    }
    if (next == TimeLimit::Clock::time_point::max()) {
      wake_.wait(lock);
    } else {
      wake_.wait_until(lock, next);
    }
  }
}

}  // namespace kiln::client

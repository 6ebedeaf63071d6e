#include "interp/turns.h"

#include <new>
#include <system_error>
#include <vector>

#include "base/stack.h"
#include "base/strings.h"
#include "base/thread.h"

namespace kiln::interp {
namespace {

// An exception leaving a thread would end the process: a lack of memory is a failure here.
template <typename F>
Status Guarded(F&& f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("there is no memory for it");
  }
}

}  // namespace

Status Turns::Run(const std::function<Status(int64_t)>& body) {
  const auto count = static_cast<int64_t>(members_.size());
  std::vector<Thread> threads;
  threads.reserve(members_.size());
  for (int64_t k = 1; k < count; ++k) {
    // No thread has begun yet: the first turn is the caller's.
    if (failure_.ok()) {
      try {
        threads.emplace_back([this, &body, k] {
          AwaitTurn(k, k);
          Act(k, body);
        });
        continue;
      } catch (const std::system_error&) {
        failure_ = ResourceExhausted("the system has no ", count, " threads for as many processes");
      } catch (const std::bad_alloc&) {
        failure_ = ResourceExhausted("there is no memory for ", count, " processes");
      }
    }
    member(k).ended = true;
  }
  Act(0, body);
  AwaitTurn(0, kNobody);
  for (Thread& thread : threads) thread.Join();
  return failure_;
}

void Turns::Act(int64_t number, const std::function<Status(int64_t)>& body) {
  if (failure_.ok()) {
    Status status = Guarded([&]() -> Status {
      Status of_body;
      KILN_RETURN_IF_ERROR(OnOwnStack([&] { of_body = body(number); }));
      return of_body;
    });
    if (failure_.ok()) failure_ = std::move(status);
  }
  member(number).ended = true;
  GiveTurn(number);
}

Status Turns::Wait(int64_t number, const std::function<bool()>& ready,
                   const std::function<std::string()>& what) {
  if (!failure_.ok() || ready()) return failure_;
  Member& own = member(number);
  own.waits_for = &what;
  own.ready = &ready;
  GiveTurn(number);
  AwaitTurn(number, number);
  own.ready = nullptr;
  return failure_;
}

Status Turns::OnCaller(int64_t number, const std::function<Status()>& errand) {
  if (number == 0) return errand();
  Status status;
  const std::function<void()> guarded = [&] { status = Guarded(errand); };
  std::unique_lock lock(mutex_);
  errand_ = &guarded;
  member(0).wake.notify_one();
  member(number).wake.wait(lock, [&] { return errand_ == nullptr; });
  return status;
}

int64_t Turns::Next(int64_t from) {
  const auto count = static_cast<int64_t>(members_.size());
  for (int64_t k = 1; k <= count; ++k) {
    const int64_t number = (from + k) % count;
    const Member& next = member(number);
    if (next.ended) continue;
    if (!next.ready || !failure_.ok() || (*next.ready)()) return number;
  }
  return kNobody;
}

Status Turns::AllWait() const {
  constexpr int kMostNamed = 8;
  std::vector<std::string> named;
  int64_t waiting = 0;
  for (const Member& m : members_) {
    if (m.ended) continue;
    if (++waiting <= kMostNamed) named.push_back((*m.waits_for)());
  }
  return FailedPrecondition("all processes that have not ended wait: ", Join(named, "; "),
                            waiting > kMostNamed ? "; ..." : "");
}

void Turns::GiveTurn(int64_t from) {
  int64_t next = Next(from);
  if (next == kNobody) {
    bool any = false;
    for (const Member& m : members_) any |= !m.ended;
    if (any) {
      failure_ = AllWait();
      next = Next(from);
    }
  }
  {
    std::lock_guard lock(mutex_);
    turn_ = next;
  }
  member(next == kNobody ? 0 : next).wake.notify_one();
}

void Turns::AwaitTurn(int64_t number, int64_t turn) {
  std::condition_variable& wake = member(number).wake;
  std::unique_lock lock(mutex_);
  while (true) {
    wake.wait(lock, [&] { return turn_ == turn || (number == 0 && errand_); });
    if (turn_ == turn) return;
    // The errand's owner has the turn, and waits.
    const std::function<void()>& errand = *errand_;
    lock.unlock();
    errand();
    lock.lock();
    errand_ = nullptr;
    member(turn_).wake.notify_one();
  }
}

}  // namespace kiln::interp

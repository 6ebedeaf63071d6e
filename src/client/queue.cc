#include "client/queue.h"

#include <atomic>
#include <condition_variable>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "base/thread.h"
#include "base/trace.h"
#include "base/unique_list.h"

namespace kiln::client {
namespace {

// On a queue's thread, its process. In a forked child the thread is not a queue's.
thread_local int64_t on_thread_of = -1;
// How many functions of the user this thread is in.
thread_local int users_functions = 0;

// The limit of pending jobs on devices.
constexpr size_t kMostRunning = 16;

}  // namespace

// The threads share it, since the queue may be destroyed by the last job of all.
struct Queue::State : std::enable_shared_from_this<State> {
  State(int n, std::string queue_name) : number(n), name(std::move(queue_name)) {}

  // The queue whose turn this thread has, or null.
  static thread_local State* turn;

  const int number;
  const std::string name;
  std::mutex mutex;
  std::condition_variable wake, idle;
  UniqueList<Job> first, jobs;  // not begun; those in `first` come first
  UniqueList<Job> running;      // on an asynchronous device
  UniqueList<Job> in_order;     // behind the job that has the strict order
  size_t running_count = 0;
  size_t waiting = 0;               // jobs in `in_order`, and those with blockers
  std::atomic<int64_t> pending{0};  // pushed and not yet gone; changed under the mutex
  bool is_taken = false;            // a thread has the turn
  bool has_order = false;           // a job of the strict order has had its turn, and not ended
  bool stop = false;
  std::vector<Thread> threads;
  size_t free_threads = 0;  // those whose job has called no function of the user

  bool has_new() const { return !first.is_empty() || !jobs.is_empty(); }
  bool has_work() const { return has_new() || running_count > 0; }
  bool is_done() const { return stop && !has_work() && waiting == 0; }

  void AddThread();
  // The next step of the next job; with the turn and the lock, which is given back meanwhile.
  void Step(std::unique_lock<std::mutex>& lock);
  // The next job to begin; null if that has to wait for the strict order.
  std::unique_ptr<Job> TakeNew();

  enum class Outcome { kParked, kGoesOn, kEnded };
  // Without the lock.
  Outcome Begin(std::unique_ptr<Job>& job);
};

thread_local Queue::State* Queue::State::turn = nullptr;

// Brings a job back at the end of its blocker.
class Queue::Parked : public Event::Callback {
 public:
  explicit Parked(std::shared_ptr<State> state) : state_(std::move(state)) {}

  void Keep(std::unique_ptr<Job> job) {
    job_ = std::move(job);
    std::lock_guard lock(state_->mutex);
    ++state_->waiting;
  }
  void Call(const Status&) noexcept override {
    {
      std::lock_guard lock(state_->mutex);
      --state_->waiting;
      state_->first.Append(std::move(job_));
    }
    state_->wake.notify_one();
  }

 private:
  const std::shared_ptr<State> state_;
  std::unique_ptr<Job> job_;
};

void Queue::State::AddThread() {
  threads.emplace_back();
  try {
    threads.back() = Thread([state = shared_from_this()] { Work(state); });
  } catch (...) {
    threads.pop_back();
    throw;
  }
  ++free_threads;
}

std::unique_ptr<Queue::Job> Queue::State::TakeNew() {
  std::unique_ptr<Job> job = first.is_empty() ? jobs.TakeFirst() : first.TakeFirst();
  if (!job->keeps_order_ || job->has_order_) return job;
  if (has_order) {
    in_order.Append(std::move(job));
    ++waiting;
    return nullptr;
  }
  has_order = job->has_order_ = true;
  return job;
}

Queue::State::Outcome Queue::State::Begin(std::unique_ptr<Job>& job) {
  while (Ref<Event> blocker = job->Blocker()) {
    std::unique_ptr<Parked> parked;
    try {
      parked = std::make_unique<Parked>(shared_from_this());
    } catch (const std::bad_alloc&) {
      blocker->WaitFor(-1);
      continue;
    }
    parked->Keep(std::move(job));
    blocker->OnReady(std::move(parked));
    return Outcome::kParked;
  }
  return job->Run() ? Outcome::kGoesOn : Outcome::kEnded;
}

void Queue::State::Step(std::unique_lock<std::mutex>& lock) {
  const bool is_new = has_new() && running_count < kMostRunning;
  std::unique_ptr<Job> job;
  if (is_new) {
    job = TakeNew();
    if (!job) return;
  } else {
    job = running.TakeFirst();
    --running_count;
  }
  const bool had_order = job->has_order_;
  lock.unlock();
  Outcome outcome = Outcome::kEnded;
  if (is_new) {
    outcome = Begin(job);
  } else {
    job->Finish();
  }
  if (outcome == Outcome::kEnded) job.reset();
  lock.lock();
  if (outcome == Outcome::kGoesOn) {
    running.Append(std::move(job));
    ++running_count;
  }
  if (outcome != Outcome::kEnded) return;
  if (had_order) {
    has_order = false;
    if (std::unique_ptr<Job> other = in_order.TakeFirst()) {
      first.Append(std::move(other));
      --waiting;
    }
  }
  if (--pending == 0) idle.notify_all();
  if (is_done()) wake.notify_all();
}

Queue::Queue(int number, std::string name)
    : state_(std::make_shared<State>(number, std::move(name))) {}

Queue::~Queue() {
  std::vector<Thread> threads;
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
    threads.swap(state_->threads);
  }
  state_->wake.notify_all();
  for (Thread& thread : threads) {
    if (thread.IsThisOne()) {
      thread.Detach();
    } else {
      thread.Join();
    }
  }
}

std::unique_lock<std::mutex> Queue::Take(std::unique_ptr<Job> job, Order order) {
  std::unique_lock lock(state_->mutex);
  if (state_->threads.empty()) state_->AddThread();
  job->keeps_order_ = order == Order::kStrict && users_functions == 0;
  (order == Order::kFirst ? state_->first : state_->jobs).Append(std::move(job));
  ++state_->pending;
  if (!state_->is_taken) state_->wake.notify_one();
  return lock;
}

bool Queue::IsIdle() const { return state_->pending.load(std::memory_order_acquire) == 0; }

void Queue::Drain() {
  if (OnThread()) return;
  std::unique_lock lock(state_->mutex);
  state_->idle.wait(lock, [&] { return state_->pending == 0; });
}

bool Queue::OnThread() { return on_thread_of == ForkGeneration(); }

Queue::InUsersFunction::InUsersFunction() noexcept {
  ++users_functions;
  State* state = State::turn;
  if (!state) return;
  std::lock_guard lock(state->mutex);
  try {
    if (state->free_threads == 1) state->AddThread();
  } catch (...) {
    return;  // without another thread it keeps the turn
  }
  --state->free_threads;
  state->is_taken = false;
  State::turn = nullptr;
  if (state->has_work()) state->wake.notify_one();
}

Queue::InUsersFunction::~InUsersFunction() { --users_functions; }

void Queue::Work(std::shared_ptr<State> state) {
  on_thread_of = ForkGeneration();
  TraceSink::NameThisThread(state->name, state->number);
  std::unique_lock lock(state->mutex);
  while (true) {
    state->wake.wait(lock,
                     [&] { return state->is_done() || (!state->is_taken && state->has_work()); });
    if (state->is_done()) return;
    state->is_taken = true;
    State::turn = state.get();
    state->Step(lock);
    if (State::turn) {
      State::turn = nullptr;
      state->is_taken = false;
    } else {
      ++state->free_threads;  // another thread has got the turn
    }
  }
}

}  // namespace kiln::client

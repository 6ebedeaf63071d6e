#include "client/queue.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <utility>

#include "base/fork.h"
#include "base/trace.h"

namespace kiln::client {
namespace {

// On a queue's thread, its process. In a forked child the thread is not a queue's.
thread_local int64_t on_thread_of = -1;

// The limit of pending jobs on devices.
constexpr size_t kMostRunning = 16;

}  // namespace

// The thread shares it, since the queue may be destroyed by the last job of all.
struct Queue::State {
  State(int n, std::string queue_name) : number(n), name(std::move(queue_name)) {}

  const int number;
  const std::string name;
  std::mutex mutex;
  std::condition_variable wake, idle;
  std::deque<std::unique_ptr<Job>> jobs;
  std::atomic<int64_t> pending{0};  // pushed and not yet gone; changed under the mutex
  bool stop = false;
};

Queue::Queue(int number, std::string name)
    : state_(std::make_shared<State>(number, std::move(name))) {}

Queue::~Queue() {
  if (!thread_.IsJoinable()) return;
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  if (thread_.IsThisOne()) {
    thread_.Detach();
  } else {
    thread_.Join();
  }
}

std::unique_lock<std::mutex> Queue::Take(std::unique_ptr<Job> job) {
  std::unique_lock lock(state_->mutex);
  if (!thread_.IsJoinable()) {
    thread_ = Thread([state = state_] { Work(state); });
  }
  state_->jobs.push_back(std::move(job));
  ++state_->pending;
  state_->wake.notify_one();
  return lock;
}

bool Queue::IsIdle() const { return state_->pending.load(std::memory_order_acquire) == 0; }

void Queue::Drain() {
  if (OnThread()) return;
  std::unique_lock lock(state_->mutex);
  state_->idle.wait(lock, [&] { return state_->pending == 0; });
}

bool Queue::OnThread() { return on_thread_of == ForkGeneration(); }

void Queue::Work(std::shared_ptr<State> state) {
  on_thread_of = ForkGeneration();
  TraceSink::NameThisThread(state->name, state->number);
  std::deque<std::unique_ptr<Job>> running;
  std::unique_lock lock(state->mutex);
  while (true) {
    if (running.empty()) {
      state->wake.wait(lock, [&] { return state->stop || !state->jobs.empty(); });
      if (state->jobs.empty()) return;
    }
    std::unique_ptr<Job> job;
    const bool is_new = !state->jobs.empty() && running.size() < kMostRunning;
    if (is_new) {
      job = std::move(state->jobs.front());
      state->jobs.pop_front();
      running.emplace_back();  // Its place, so that keeping the job cannot fail.
    } else {
      job = std::move(running.front());
      running.pop_front();
    }
    lock.unlock();
    bool goes_on = false;
    if (is_new) {
      goes_on = job->Run();
      if (goes_on) {
        running.back() = std::move(job);
      } else {
        running.pop_back();
      }
    } else {
      job->Finish();
    }
    job.reset();
    lock.lock();
    if (!goes_on && --state->pending == 0) state->idle.notify_all();
  }
}

}  // namespace kiln::client

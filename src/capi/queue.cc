#include "capi/queue.h"

#include <condition_variable>
#include <deque>

namespace kiln::capi {
namespace {

thread_local bool on_thread = false;

}  // namespace

// The thread shares it, since the queue may be destroyed by the last job of all.
struct Queue::State {
  std::mutex mutex;
  std::condition_variable wake, idle;
  std::deque<std::unique_ptr<Job>> jobs;
  int64_t pending = 0;  // pushed and not yet gone
  bool stop = false;
};

Queue::Queue() : state_(std::make_shared<State>()) {}

Queue::~Queue() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

std::unique_lock<std::mutex> Queue::Take(std::unique_ptr<Job> job) {
  std::unique_lock lock(state_->mutex);
  if (!thread_.joinable()) thread_ = std::thread(Work, state_);
  state_->jobs.push_back(std::move(job));
  ++state_->pending;
  state_->wake.notify_one();
  return lock;
}

void Queue::Drain() {
  std::unique_lock lock(state_->mutex);
  if (thread_.get_id() == std::this_thread::get_id()) return;
  state_->idle.wait(lock, [&] { return state_->pending == 0; });
}

bool Queue::OnThread() { return on_thread; }

void Queue::Work(std::shared_ptr<State> state) {
  on_thread = true;
  std::unique_lock lock(state->mutex);
  while (true) {
    state->wake.wait(lock, [&] { return state->stop || !state->jobs.empty(); });
    if (state->jobs.empty()) return;
    std::unique_ptr<Job> job = std::move(state->jobs.front());
    state->jobs.pop_front();
    lock.unlock();
    job->Run();
    job.reset();
    lock.lock();
    if (--state->pending == 0) state->idle.notify_all();
  }
}

}  // namespace kiln::capi

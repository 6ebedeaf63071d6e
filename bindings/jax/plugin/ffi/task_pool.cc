#include "plugin/ffi/task_pool.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace kiln_jax {
namespace {

/** Threads are made as tasks come, and stay for the life of the process. */
class TaskPool {
 public:
  void Schedule(void (*task)(void*), void* data) {
    std::unique_lock lock(mutex_);
    if (waiting_ <= std::ssize(tasks_) && threads_ < TaskThreads()) {
      try {
        std::thread([this] { Work(); }).detach();
        ++threads_;
      } catch (const std::system_error&) {
        // With fewer threads, or with none.
      }
    }
    if (threads_ > 0) {
      tasks_.emplace_back(task, data);
      changed_.notify_one();
      return;
    }
    lock.unlock();
    task(data);
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      ++waiting_;
      changed_.wait(lock, [&] { return !tasks_.empty(); });
      --waiting_;
      const auto [task, data] = tasks_.front();
      tasks_.pop_front();
      lock.unlock();
      task(data);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<void (*)(void*), void*>> tasks_;
  int64_t threads_ = 0, waiting_ = 0;
};

}  // namespace

int64_t TaskThreads() {
  static const int64_t threads = std::max(1u, std::thread::hardware_concurrency());
  return threads;
}

void ScheduleTask(void (*task)(void* data), void* data) {
  static TaskPool& pool = *new TaskPool;
  pool.Schedule(task, data);
}

}  // namespace kiln_jax

#include "runtime/thread_pool.h"

#include <sched.h>

#include <atomic>
#include <exception>
#include <utility>
#include <vector>

#include "base/stack.h"
#include "base/thread.h"
#include "base/trace.h"
#include "runtime/tasks.h"

namespace kiln::runtime {

struct ThreadPool::State {
  State(int threads, std::string pool_name) : name(std::move(pool_name)) {
    workers.reserve(threads - 1);
    try {
      for (int i = 1; i < threads; ++i) {
        workers.emplace_back([this, i] {
          TraceSink::NameThisThread(name, i);
          board.Serve();
        });
      }
    } catch (const std::exception&) {
      // The system has no more threads: the existing ones and the caller do all the tasks.
    }
  }

  ~State() {
    board.Stop();
    for (Thread& w : workers) w.Join();
  }

  const std::string name;
  TaskBoard board;
  std::vector<Thread> workers;
};

namespace {

// Whether this thread is inside a task of a user's pool.
thread_local bool inside_users_task = false;

// Tasks on a user's pool. Each call takes the next task, whatever its number is, so a pool that
// calls too seldom or too often does no harm before it returns.
class UsersRun {
 public:
  UsersRun(int64_t tasks, void (*work)(void* context, int64_t task), void* context)
      : tasks_(tasks), work_(work), context_(context) {}

  void On(const UsersPool& pool) {
    OnCallersStack([&] { pool.run(pool.user_data, tasks_, &Call, this); });
    while (TakeTask()) {
    }
    // What it left running.
    while (finished_.load() != tasks_) sched_yield();
  }

 private:
  static void Call(void* run, int64_t /*number*/) {
    // Without memory for the stack the task is left to the caller of the run.
    (void)OnOwnStack([&] { static_cast<UsersRun*>(run)->TakeTask(); });
  }

  bool TakeTask() {
    const int64_t task = next_.fetch_add(1);
    if (task >= tasks_) return false;
    inside_users_task = true;
    work_(context_, task);
    inside_users_task = false;
    finished_.fetch_add(1);
    return true;
  }

  const int64_t tasks_;
  void (*const work_)(void* context, int64_t task);
  void* const context_;
  std::atomic<int64_t> next_{0}, finished_{0};
};

}  // namespace

ThreadPool::ThreadPool(int threads, std::string name, UsersPool users)
    : threads_(threads < 1 ? 1 : threads),
      users_(users),
      state_(threads_ > 1 && !users.run ? std::make_unique<State>(threads_, std::move(name))
                                        : nullptr) {}

ThreadPool::~ThreadPool() = default;

void ThreadPool::Run(int64_t tasks, void (*work)(void* context, int64_t task), void* context) {
  if (tasks > 1 && state_ && state_->board.Run(tasks, work, context)) return;
  if (tasks > 1 && threads_ > 1 && users_.run && !inside_users_task) {
    return UsersRun(tasks, work, context).On(users_);
  }
  for (int64_t task = 0; task < tasks; ++task) work(context, task);
}

}  // namespace kiln::runtime

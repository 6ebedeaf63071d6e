#include "runtime/thread_pool.h"

#include <exception>
#include <utility>
#include <vector>

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

ThreadPool::ThreadPool(int threads, std::string name)
    : threads_(threads < 1 ? 1 : threads),
      state_(threads_ > 1 ? std::make_unique<State>(threads_, std::move(name)) : nullptr) {}

ThreadPool::~ThreadPool() = default;

void ThreadPool::Run(int64_t tasks, void (*work)(void* context, int64_t task), void* context) {
  if (tasks > 1 && state_ && state_->board.Run(tasks, work, context)) return;
  for (int64_t task = 0; task < tasks; ++task) work(context, task);
}

}  // namespace kiln::runtime

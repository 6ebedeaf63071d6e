// The threads of parallel kernels. Workers spin briefly, then park: idle spinners stall other
// programs for milliseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/launch.h"

namespace kiln::runtime {

class ThreadPool {
 public:
  // `threads` includes the caller's: 1 means that no thread is ever created. The others are created
  // with the pool, and named "kiln NAME 1" and so on in timelines.
  explicit ThreadPool(int threads, std::string name = "worker");
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls work(context, task) for every task in [0, tasks), on the pool's threads and the caller's,
  // and returns when all are done. The assignment of tasks to threads is unspecified. While another
  // caller has the threads, or inside a task, all tasks run on the caller's thread. `work` must not
  // throw.
  void Run(int64_t tasks, void (*work)(void* context, int64_t task), void* context);

 private:
  struct State;
  const int threads_;
  std::unique_ptr<State> state_;
};

}  // namespace kiln::runtime

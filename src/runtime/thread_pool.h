// The threads of parallel kernels. Workers spin briefly, then park: idle spinners stall other
// programs for milliseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/launch.h"

namespace kiln::runtime {

// Threads of the user's: calls task(context, number) for each number in [0, tasks), and returns
// when all calls have returned. It may be called by several threads at once.
struct UsersPool {
  void (*run)(void* user_data, int64_t tasks, void (*task)(void* context, int64_t number),
              void* context) = nullptr;
  void* user_data = nullptr;
};

class ThreadPool {
 public:
  // `threads` includes the caller's: 1 means that no thread is ever created. The others are created
  // with the pool, and named "kiln NAME 1" and so on in timelines; or they are the user's.
  explicit ThreadPool(int threads, std::string name = "worker", UsersPool users = {});
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
  const UsersPool users_;
  std::unique_ptr<State> state_;
};

}  // namespace kiln::runtime

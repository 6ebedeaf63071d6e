// The threads of parallel kernels. Workers spin briefly, then park: idle spinners stall other
// programs for milliseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

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

// The piece [begin, end) of [0, items) that is number `piece` of `pieces`: contiguous, sizes differ
// by one at most.
struct Range {
  int64_t begin, end;
};
inline Range PieceOf(int64_t items, int64_t pieces, int64_t piece) {
  int64_t size = items / pieces, rest = items % pieces;
  int64_t begin = piece * size + (piece < rest ? piece : rest);
  return {begin, begin + size + (piece < rest ? 1 : 0)};
}

}  // namespace kiln::runtime

// The library's own threads inside a user's process.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <functional>

namespace kiln {

// The stack size of threads, independent of the process's limits. Deep work goes to base/stack.h;
// kernels and callbacks run on these.
inline constexpr size_t kThreadStackBytes = size_t{8} << 20;

// As std::thread, but without signals sent to the process: all signals are blocked except
// synchronous ones, such as SIGSEGV.
class Thread {
 public:
  Thread() = default;
  // Begins at once. Throws system_error if the system refuses a thread, or bad_alloc. `body` must
  // not throw.
  explicit Thread(std::function<void()> body);
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;
  // It must have been joined or detached.
  ~Thread();

  bool IsJoinable() const { return joinable_; }
  void Join();
  void Detach();
  // Whether it is the calling thread.
  bool IsThisOne() const { return joinable_ && pthread_equal(thread_, pthread_self()) != 0; }

 private:
  pthread_t thread_{};
  bool joinable_ = false;
};

}  // namespace kiln

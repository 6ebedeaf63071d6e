// Threads of the library's own, within somebody else's process.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <functional>

namespace kiln {

// Addresses that a thread has for its stack, whatever the limits of the process say. Deep work goes
// to base/stack.h; what is left are kernels and functions of the user's.
inline constexpr size_t kThreadStackBytes = size_t{8} << 20;

// As std::thread, but that no signal is handled there which is sent to the process: all are blocked
// but those that a thread brings about itself, such as SIGSEGV.
class Thread {
 public:
  Thread() = default;
  // Begins at once. Throws system_error where the system has no thread, or bad_alloc. `body` must
  // not throw.
  explicit Thread(std::function<void()> body);
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;
  // It must have been joined or detached.
  ~Thread();

  bool IsJoinable() const { return joinable_; }
  void Join();
  void Detach();
  // Whether it is the one that asks.
  bool IsThisOne() const { return joinable_ && pthread_equal(thread_, pthread_self()) != 0; }

 private:
  pthread_t thread_{};
  bool joinable_ = false;
};

}  // namespace kiln

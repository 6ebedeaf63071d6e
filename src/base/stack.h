// Work on stacks of the library's own: its depth does not depend on the caller's stack, and it can
// be abandoned from within. No thread is created. On machines without fibers work runs on the
// caller's stack, and cannot be abandoned.
#pragma once

#include <cstddef>
#include <type_traits>

#include "base/status.h"

namespace kiln {

#if defined(__x86_64__)
inline constexpr bool kHasOwnStacks = true;
#else
inline constexpr bool kHasOwnStacks = false;
#endif

// The stack size of deep work. The system provides the touched pages only.
inline constexpr size_t kOwnStackBytes = size_t{64} << 20;

// A reference to a function without arguments, for the duration of a call.
class StackWork {
 public:
  template <typename F>
  StackWork(F&& f)  // NOLINT: lambdas are passed as they are
      : call_([](void* function) { (*static_cast<std::remove_reference_t<F>*>(function))(); }),
        function_(const_cast<void*>(static_cast<const void*>(&f))) {}
  void operator()() const { call_(function_); }

 private:
  void (*call_)(void*);
  void* function_;
};

// Runs work() on a stack of the library's own, or directly if already on one. Exceptions propagate.
// RESOURCE_EXHAUSTED without memory for the stack, before work() runs.
Status OnOwnStack(StackWork work);

// Runs a callback of the user on the stack of the user's own call.
void OnCallersStack(StackWork function);

// Runs work(), always on another stack, so that Abandon() can end it at any point: its status, or
// OK. Abandoned work leaks everything it holds: memory, its stack, locks. It may affect other state
// only by a last step that cannot be abandoned, such as the move of a result.
Status RunAbandonable(StackWork work);
// Whether this thread is inside such work.
bool IsAbandonable();
// Inside the scope the thread's work cannot be abandoned, because it holds a shared resource such
// as a lock.
class NotAbandonable {
 public:
  NotAbandonable();
  ~NotAbandonable();
  NotAbandonable(const NotAbandonable&) = delete;
  NotAbandonable& operator=(const NotAbandonable&) = delete;
};
// Abandons the innermost such work.
[[noreturn]] void Abandon(const Status& status);

}  // namespace kiln

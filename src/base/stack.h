// Work on stacks of the library's own: how deep it goes does not depend on how much stack the
// caller has, and it can be given up from within. No thread is made. On machines without fibers
// work runs on the caller's stack, and cannot be given up.
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

// What deep work may take. The system provides the pages that are touched.
inline constexpr size_t kOwnStackBytes = size_t{64} << 20;

// Refers to a function without arguments, for the time of a call that takes it.
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

// Runs work() on a stack of the library's own; within such work, right there. What it throws is
// thrown here. RESOURCE_EXHAUSTED where there is no memory for the stack: nothing has run then.
Status OnOwnStack(StackWork work);

// Runs a function of the user's on the stack that his call came on, wherever the library is.
void OnCallersStack(StackWork function);

// Runs work(), always on another stack, so that Abandon() ends it at any point: its status, or OK.
// Abandoned work leaves for good whatever it holds: memory, its stack, locks. It must touch nothing
// else but by a last step that cannot be abandoned, such as the move of a result.
Status RunAbandonable(StackWork work);
// Whether this thread is in such work.
bool IsAbandonable();
// In the scope the thread's work cannot be abandoned: others would wait for what it holds, such as
// a lock.
class NotAbandonable {
 public:
  NotAbandonable();
  ~NotAbandonable();
  NotAbandonable(const NotAbandonable&) = delete;
  NotAbandonable& operator=(const NotAbandonable&) = delete;
};
// Ends the innermost work of that kind.
[[noreturn]] void Abandon(const Status& status);

}  // namespace kiln

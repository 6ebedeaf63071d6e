// Stacks to switch between, within one thread. On x86-64; elsewhere switching does nothing.
#pragma once

#include <cstddef>

namespace kiln {

// The suspended state of a stack: of a fiber, or of the code that entered one.
struct FiberContext {
  void* stack_pointer = nullptr;
  // The sanitizers' handle of the stack.
  void* name = nullptr;
  const void* bottom = nullptr;
  size_t bytes = 0;
};

// Saves the current state in `from` and resumes the other one.
void SwitchFiber(FiberContext& from, FiberContext& to);
// The same for the last time: `from` is never resumed.
[[noreturn]] void LeaveFiber(FiberContext& to);

// The function of a fiber; returns the context to resume at its end.
using FiberFunction = FiberContext* (*)(void* argument);

class Fiber {
 public:
  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The stack memory, which outlives the fiber.
  void SetStack(std::byte* memory, size_t bytes);
  // Makes the next switch to the context a call. The previous function has ended, or is never
  // resumed.
  void Start(FiberFunction function, void* argument);
  FiberContext& context() { return context_; }

 private:
  static void Enter(Fiber* fiber);

  FiberContext context_;
  std::byte* stack_ = nullptr;
  FiberFunction function_ = nullptr;
  void* argument_ = nullptr;
  bool waits_ = false;  // at the end of what ran before
};

// Returns the memory of fibers' stacks to the system.
void UnmapStacks(void* memory, size_t bytes);

}  // namespace kiln

// Stacks to switch between, within one thread. On x86-64; elsewhere switching does nothing.
#pragma once

#include <cstddef>

namespace kiln {

// Where a stack was left: a fiber, or whoever went into one.
struct FiberContext {
  void* stack_pointer = nullptr;
  // What the sanitizers know the stack by.
  void* name = nullptr;
  const void* bottom = nullptr;
  size_t bytes = 0;
};

// Leaves the one side, which `from` is to remember, for where the other one was left.
void SwitchFiber(FiberContext& from, FiberContext& to);
// The same for the last time: nobody comes back to where this is called.
[[noreturn]] void LeaveFiber(FiberContext& to);

// What runs on a fiber; at its end, where to go on.
using FiberFunction = FiberContext* (*)(void* argument);

class Fiber {
 public:
  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The memory to run on, which outlives the fiber.
  void SetStack(std::byte* memory, size_t bytes);
  // Makes the next switch to the context a call. Whatever ran here has ended, or never goes on.
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

// Memory that fibers' stacks were in, back to the system.
void UnmapStacks(void* memory, size_t bytes);

}  // namespace kiln

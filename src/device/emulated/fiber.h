// Stacks to switch between: one for each thread of an emulated block.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace kiln::device {

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

// What runs on a fiber; at its end, where to go on.
using FiberFunction = FiberContext* (*)(void* argument);

class Fiber {
 public:
  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Makes the next switch to the context a call. Whatever ran here has ended, or never goes on.
  void Start(FiberFunction function, void* argument);
  FiberContext& context() { return context_; }

 private:
  friend class FiberStacks;
  static void Enter(Fiber* fiber);

  FiberContext context_;
  std::byte* stack_ = nullptr;
  FiberFunction function_ = nullptr;
  void* argument_ = nullptr;
  bool waits_ = false;  // at the end of what ran before
};

// The fibers of one thread of the host. They lie in one mapping without guard pages: a guard each
// would use up the system's number of mappings, and kernels have neither recursion nor large
// frames.
class FiberStacks {
 public:
  FiberStacks() = default;
  ~FiberStacks();
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;

  // At least so many; false where there is no memory. All fibers from before are gone.
  bool Reserve(size_t count);
  size_t size() const { return count_; }
  Fiber& operator[](size_t i) { return fibers_[i]; }

 private:
  std::unique_ptr<Fiber[]> fibers_;
  size_t count_ = 0;
  std::byte* memory_ = nullptr;
};

}  // namespace kiln::device

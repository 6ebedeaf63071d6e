// Stacks to switch between: one for each thread of an emulated block.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace kiln::device {

// A function that runs on a stack of its own, and can be left and entered again.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Whether there is a stack: memory for it may have run out.
  bool valid() const { return stack_ != nullptr; }
  // Prepares a run of function(argument); the run before must have ended.
  void Start(void (*function)(void*), void* argument);
  // Runs until the function yields or returns; true when it has returned. Called from outside.
  bool Resume();
  // Back to whoever resumed. Called from inside.
  void Yield();

 private:
  static void Enter(Fiber* fiber);
  std::byte* stack_ = nullptr;
  void* inside_ = nullptr;  // stack pointers while the other side runs
  void* outside_ = nullptr;
  void (*function_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool done_ = true;
  // ThreadSanitizer's names of both sides, in a build with it.
  void* inside_name_ = nullptr;
  void* outside_name_ = nullptr;
};

}  // namespace kiln::device

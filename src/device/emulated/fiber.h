// The stacks of an emulated block: one for each of its threads.
#pragma once

#include <cstddef>
#include <memory>

#include "base/fiber.h"

namespace kiln::device {

// The fibers of one thread of the host. They lie in one mapping without guard pages: a guard each
// would use up the system's number of mappings, and what kernels take is known.
class FiberStacks {
 public:
  FiberStacks() = default;
  ~FiberStacks();
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;

  // At least so many, for code that takes so much stack, beside what it calls; false where there is
  // no memory. All fibers from before are gone.
  bool Reserve(size_t count, size_t code_bytes);
  size_t size() const { return count_; }
  Fiber& operator[](size_t i) { return fibers_[i]; }

 private:
  std::unique_ptr<Fiber[]> fibers_;
  size_t count_ = 0, stride_ = 0;
  std::byte* memory_ = nullptr;
};

}  // namespace kiln::device

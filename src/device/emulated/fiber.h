// The stacks of an emulated block: one for each of its threads.
#pragma once

#include <cstddef>
#include <memory>

#include "base/fiber.h"

namespace kiln::device {

// The fibers of one host thread. They share one mapping without guard pages: guards would exceed
// the system's number of mappings, and the stack use of kernels is known.
class FiberStacks {
 public:
  FiberStacks() = default;
  ~FiberStacks();
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;

  // At least this number, for code with this stack use, callees excluded; false without memory.
  // Destroys all earlier fibers.
  bool Reserve(size_t count, size_t code_bytes);
  size_t size() const { return count_; }
  Fiber& operator[](size_t i) { return fibers_[i]; }

 private:
  std::unique_ptr<Fiber[]> fibers_;
  size_t count_ = 0, stride_ = 0;
  std::byte* memory_ = nullptr;
};

}  // namespace kiln::device

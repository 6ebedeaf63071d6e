// Memory for code that cannot handle failures of malloc. The linker replaces malloc and the like by
// __wrap_malloc and so on (memory.cc), within the library only.
#pragma once

#include "base/status.h"

namespace kiln::backend {

// The reserve of abandonable work (base/stack.h): a failure of malloc releases it and tries again,
// and the next failure abandons the work.
class MemoryReserve {
 public:
  explicit MemoryReserve(Status failure) : failure_(std::move(failure)) {}
  ~MemoryReserve() { Release(); }
  MemoryReserve(const MemoryReserve&) = delete;
  MemoryReserve& operator=(const MemoryReserve&) = delete;

  // Whether the reserve is available: allocates it again if it was used.
  bool Refill();
  // Releases it; whether there was any.
  bool Release();
  // The status of work without memory: made in advance, because there is no memory for it then.
  const Status& failure() const { return failure_; }

 private:
  void* block_ = nullptr;
  Status failure_;
};

// The reserve for this thread's work in the scope.
class ReserveScope {
 public:
  explicit ReserveScope(MemoryReserve& reserve);
  ~ReserveScope();
  ReserveScope(const ReserveScope&) = delete;
  ReserveScope& operator=(const ReserveScope&) = delete;

 private:
  MemoryReserve* outer_;
};

}  // namespace kiln::backend

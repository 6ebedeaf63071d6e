// Memory for code that cannot live without. The link makes malloc and its like __wrap_malloc and
// so on (memory.cc), within the library alone.
#pragma once

#include "base/status.h"

namespace kiln::backend {

// What abandonable work (base/stack.h) has left when the system has no more: a failure of malloc
// gives this back and tries again, and the next one abandons the work.
class MemoryReserve {
 public:
  explicit MemoryReserve(Status failure) : failure_(std::move(failure)) {}
  ~MemoryReserve() { Release(); }
  MemoryReserve(const MemoryReserve&) = delete;
  MemoryReserve& operator=(const MemoryReserve&) = delete;

  // Whether it is there: makes it, if it has been used.
  bool Refill();
  // Gives it back; whether there was any.
  bool Release();
  // How work ends without: made before, as there is no memory for it then.
  const Status& failure() const { return failure_; }

 private:
  void* block_ = nullptr;
  Status failure_;
};

// The reserve of what this thread does in the scope.
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

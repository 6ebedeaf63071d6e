#include "base/interrupt.h"

namespace kiln {

Status Interrupt::Check() const {
  if (cancel_ && __atomic_load_n(cancel_, __ATOMIC_RELAXED) != 0) return Cancelled("cancelled");
  if (deadline_ && Clock::now() >= *deadline_) {
    return Status(Code::kDeadlineExceeded, "the deadline has passed");
  }
  return OkStatus();
}

}  // namespace kiln

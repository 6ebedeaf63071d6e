// Whether work that takes long is to end before its time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/status.h"

namespace kiln {

// A flag of the caller's, a deadline, both or neither. A plain value; copies share the flag. Asking
// costs a load, and with a deadline a look at the clock: once for some microseconds of work is
// cheap.
class Interrupt {
 public:
  using Clock = std::chrono::steady_clock;

  Interrupt() = default;
  // `cancel` may be null; it outlives all copies, and any thread may set it.
  explicit Interrupt(const int32_t* cancel, std::optional<Clock::time_point> deadline = {})
      : cancel_(cancel), deadline_(deadline) {}

  // CANCELLED or DEADLINE_EXCEEDED once the work should end, else OK.
  Status Check() const;

 private:
  const int32_t* cancel_ = nullptr;
  std::optional<Clock::time_point> deadline_;
};

}  // namespace kiln

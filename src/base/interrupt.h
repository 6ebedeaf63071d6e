// Cancellation and deadlines of long work.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/status.h"

namespace kiln {

// A flag of the caller, a deadline, both or neither. A plain value; copies share the flag. A check
// costs a load, with a deadline also a reading of the clock: cheap once per few microseconds of
// work.
class Interrupt {
 public:
  using Clock = std::chrono::steady_clock;

  Interrupt() = default;
  // `cancel` may be null; it outlives all copies, and any thread may set it.
  explicit Interrupt(const int32_t* cancel, std::optional<Clock::time_point> deadline = {})
      : cancel_(cancel), deadline_(deadline) {}

  // CANCELLED or DEADLINE_EXCEEDED if the work should end, otherwise OK.
  Status Check() const;

 private:
  const int32_t* cancel_ = nullptr;
  std::optional<Clock::time_point> deadline_;
};

}  // namespace kiln

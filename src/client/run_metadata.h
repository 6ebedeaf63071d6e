// Sums of a recording, by op and device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/trace.h"

namespace kiln::client {

// One op of one device.
struct OpMetadata {
  std::string op;         // or ops of one kernel, an executable, or the ends of a transfer
  std::string device;     // that did the work
  std::string_view kind;  // a category of events; a literal, null-terminated
  int64_t count = 0;
  int64_t nanoseconds = 0;
  int64_t bytes = 0, flops = 0;
};

// The most time first.
std::vector<OpMetadata> Summarise(const TraceSink& trace);

}  // namespace kiln::client

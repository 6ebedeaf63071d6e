// Programs that check themselves: StableHLO modules that compare their results by custom calls.
#pragma once

#include <string>

#include "tools/kiln_run/workers.h"

namespace kiln::run {

struct CheckOptions {
  // A device's name in the C ABI. A GPU is emulated where there is none.
  std::string device = "CPU:0";
  std::string disabled_passes;  // names of passes to leave out, with commas between
  bool disabled_too = false;    // also files that are marked RUN-DISABLED
};

// Runs all modules of a file, text or bytecode, on a device. It passes where all do without an
// error. A file that is marked RUN-DISABLED, whose entry takes arguments, or that has no module, is
// skipped.
Outcome CheckFile(const std::string& path, const CheckOptions& options);

}  // namespace kiln::run

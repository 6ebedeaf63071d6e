// Programs that check themselves: StableHLO modules that compare their results by custom calls.
#pragma once

#include <optional>
#include <string>

#include "tools/kiln_run/workers.h"

namespace kiln::run {

struct CheckOptions {
  // A device's name in the C ABI. A GPU is emulated where there is none.
  std::string device = "CPU:0";
  std::string disabled_passes;  // names of passes to leave out, with commas between
  int64_t memory_limit_bytes = 0;
  bool disabled_too = false;  // also files that are marked RUN-DISABLED
};

// Runs all modules of a file, text or bytecode, or a saved program, on a device. Passes if all run
// without an error. Skips a file marked RUN-DISABLED, a file whose entry has arguments, and a file
// without a module.
Outcome CheckFile(const std::string& path, const CheckOptions& options);

// Compiles the module of a file, and saves the program as the file `to`. The failure, if there is
// one.
std::optional<std::string> SaveProgram(const std::string& path, const std::string& to,
                                       const CheckOptions& options);

}  // namespace kiln::run

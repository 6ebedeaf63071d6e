// Programs run and judged, each in a process of its own, with a report of each.
#pragma once

#include <string>
#include <vector>

#include "tools/kiln_run/judge.h"
#include "tools/kiln_run/workers.h"

namespace kiln::run {

struct RunOptions {
  JudgeOptions judge;
  WorkerOptions workers;
  bool json = false;
  bool isolate = false;
  std::string reduce_to;  // a file; "true": named after the program; "" or "false": not reduced
};

// Prints the reports on standard output, as text or as a JSON array. Whether all passed.
bool RunFiles(const std::vector<std::string>& paths, const RunOptions& options);

}  // namespace kiln::run

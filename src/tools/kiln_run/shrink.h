// A failing program made small, and written as a file that fails by itself.
#pragma once

#include <string>

#include "tools/kiln_run/judge.h"
#include "tools/kiln_run/report.h"
#include "tools/kiln_run/workers.h"

namespace kiln::run {

// The program of a file with a report of a failure, as FileReport() makes it, without what the same
// kind of failure does not need. Each try is a process, which ends after `deadline_s` seconds; a
// program that is seeded is tried on seeded arguments. Writes HLO text to the file `to`, and the
// arguments beside it (`to`.0.npy and so on) if they are from files. Returns the member "reduced"
// of the report. The calling process must have no other threads.
Json ReduceFailure(const std::string& path, const Json& report, const JudgeOptions& options,
                   int deadline_s, const std::string& to);

}  // namespace kiln::run

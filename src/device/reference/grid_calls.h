// Grids of processes in compiled code: calls that the evaluator runs.
#pragma once

#include "runtime/custom_calls.h"

namespace kiln::device {

// Adds the function of interpreter.run_parallel, as the pass outline-grids leaves it. The host must
// outlive the registry's functions; it may be the registry's own.
Status AddGridCalls(runtime::CustomCallRegistry& registry, const runtime::CallHost& host);

}  // namespace kiln::device

// Grids of processes in compiled code: calls run by the evaluator.
#pragma once

#include "runtime/custom_calls.h"

namespace kiln::device {

// Adds the function of interpreter.run_parallel, in the form made by the pass outline-grids. The
// host must outlive the registry's functions; it may be the registry's own.
Status AddGridCalls(runtime::CustomCallRegistry& registry, const runtime::CallHost& host);

}  // namespace kiln::device

// Grids of processes in compiled code: calls run by the evaluator.
#pragma once

#include "runtime/custom_calls.h"

namespace kiln::device {

// Adds the function of interpreter.run_parallel, in the form made by the pass outline-grids. Its
// programs call `functions`, on the threads of their caller; these must outlive the registry's, and
// may be the same.
Status AddGridCalls(runtime::CustomCallRegistry& registry,
                    const runtime::CustomCallRegistry& functions);

}  // namespace kiln::device

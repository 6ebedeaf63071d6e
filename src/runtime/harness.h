// Custom calls of programs that test evaluators, in compiled code: probes and prints, which
// interp/harness.h describes. They keep what they have to in the run.
#pragma once

#include <span>

#include "runtime/lib/function.h"

namespace kiln::runtime {

std::span<const lib::Entry> Harness();

}  // namespace kiln::runtime

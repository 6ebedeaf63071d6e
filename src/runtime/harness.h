// Custom calls of programs that test evaluators, in compiled code: probes and prints, described in
// interp/harness.h. Their state belongs to the run.
#pragma once

#include <span>

#include "runtime/lib/function.h"

namespace kiln::runtime {

std::span<const lib::Entry> Harness();

}  // namespace kiln::runtime

// The functions outside generated code that a program calls.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "plan/plan.h"

namespace kiln::plan {

// The distinct targets of the program's Call steps, in the order in which they first appear in the
// prologue and then in the steps. kiln_call_fn names a function by its index here.
std::vector<std::string> CallTargets(const Program& program);

// UNIMPLEMENTED, naming the targets, where the program calls any: no device has functions for them.
// Better said when it is loaded than in a run.
Status CheckNoCalls(const Program& program);

}  // namespace kiln::plan

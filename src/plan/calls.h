// The calls of a program of functions outside generated code.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace kiln::plan {

// Every Call step, those of the prologue first, then in the order in which they stand in the
// program. Borrowed.
std::vector<const Call*> CallSteps(const Program& program);

}  // namespace kiln::plan

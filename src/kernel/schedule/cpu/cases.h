// Code for each piece of a concatenation.
#pragma once

#include "kernel/schedule/cpu/nest.h"

namespace kiln::kernel {

// The places of outer variables at which the pieces begin that a kernel of one stage without inner
// variables tells apart: those of the variable that the most tests depend on alone, and those of
// the vectors' variable, so that whole vectors are of one piece and take no masks. None where there
// are few tests, too many pieces, or few points behind a place. The vectors have been chosen.
std::vector<CpuCases> CasesOf(const Kernel& kernel, const CpuNestSchedule& schedule);

}  // namespace kiln::kernel

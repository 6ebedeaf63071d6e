// A kernel with the schedule for a target.
#pragma once

#include "base/status.h"
#include "plan/plan.h"
#include "target/target.h"

namespace kiln::compiler {

Result<plan::ScheduledKernel> ScheduleKernel(kernel::Kernel kernel, const target::Target& target);

// Bytes of scratch that a launch of the kernel takes as its last argument; 0 for none.
int64_t ScratchBytes(const plan::ScheduledKernel& kernel, const target::Target& target);

}  // namespace kiln::compiler

// How a kernel of kind kScatter runs on a CPU.
#pragma once

#include "kernel/schedule/cpu/nest.h"

namespace kiln::kernel {

// Every item goes through all index vectors of its outer points in order: outside the vector
// variable's loop, which may be an outer one's. So the order of updates never depends on the items.
// Where the vector variable is reduced, vectors are of index vectors, whose updates go one by one.
CpuNestSchedule ScheduleScatter(const Kernel& kernel, const target::Cpu& cpu);

}  // namespace kiln::kernel

// Rows walked more than once, as in softmax: they are in the first-level cache after the first
// walk, and the task is to keep memory busy meanwhile.
#pragma once

#include "kernel/kernel.h"
#include "kernel/schedule/cpu/nest.h"
#include "target/target.h"

namespace kiln::kernel {

// The approximate number of instructions per point.
int WeightOf(const Node& node);
int WeightOf(const Stage& stage);

// Chooses staged and prefetched rows and kept values, and withdraws nontemporal stores for outputs
// read again. The rest of the schedule is unchanged.
void ScheduleRows(const Kernel& kernel, const target::Cpu& cpu, CpuNestSchedule& schedule);

}  // namespace kiln::kernel

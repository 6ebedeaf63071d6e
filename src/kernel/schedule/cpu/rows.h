// Rows that a kernel walks more than once, as softmax does: they are in the first cache after the
// first walk, and what is left to do is to keep memory busy meanwhile.
#pragma once

#include "kernel/kernel.h"
#include "kernel/schedule/cpu/nest.h"
#include "target/target.h"

namespace kiln::kernel {

// About how many instructions a point takes.
int WeightOf(const Stage& stage);

// Chooses what is staged and what is prefetched, and takes back nontemporal stores where what they
// write is read again. The rest of the schedule stands.
void ScheduleRows(const Kernel& kernel, const target::Cpu& cpu, CpuNestSchedule& schedule);

}  // namespace kiln::kernel

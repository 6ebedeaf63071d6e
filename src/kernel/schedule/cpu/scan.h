// How a kernel of kind kScan runs on a CPU.
#pragma once

#include "kernel/schedule/cpu/nest.h"

namespace kiln::kernel {

// Every item scans all of its outer points from end to end. Vectors are along an outer variable,
// where memory is contiguous along one; else along the scanned one, where the reductions are
// associative: then the sums of a vector's lanes are taken in a tree that depends on the width.
CpuNestSchedule ScheduleScan(const Kernel& kernel, const target::Cpu& cpu);

}  // namespace kiln::kernel

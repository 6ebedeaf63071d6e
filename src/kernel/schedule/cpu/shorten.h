// Kernels whose time does not count, with less code.
#pragma once

#include "kernel/kernel.h"
#include "kernel/schedule/cpu/nest.h"
#include "target/target.h"

namespace kiln::kernel {

// The schedule without what takes code to save time: pipelined rows, prefetches, squares, and
// vectors side by side but where those are sums' accumulators. The results have the same bits.
CpuNestSchedule Shortened(const Kernel& kernel, const CpuNestSchedule& schedule,
                          const target::Cpu& cpu);

}  // namespace kiln::kernel

#pragma once

#include <optional>

#include "kernel/kernel.h"
#include "kernel/schedule/gpu/schedule.h"
#include "target/target.h"

namespace kiln::kernel {

// The schedule of a nest whose stages walk inner points, where teams of threads can share these:
// where every reduction has a neutral element. `block_threads` are those of a block, or 0 for what
// suits the kernel, which may then be cut into two launches.
std::optional<GpuSchedule> ScheduleTeams(const Kernel& kernel, const target::Gpu& gpu,
                                         int block_threads);

}  // namespace kiln::kernel

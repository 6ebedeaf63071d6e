// Scans and sorts on a GPU.
#pragma once

#include <optional>

#include "kernel/kernel.h"
#include "kernel/schedule/gpu/schedule.h"
#include "target/target.h"

namespace kiln::kernel {

// For a kernel of kind kScan whose scans should be shared by a block's threads.
std::optional<GpuSchedule> ScheduleGpuScan(const Kernel& kernel, const target::Gpu& gpu);

// Of a kernel of kind kSort.
GpuSchedule ScheduleGpuSort(const Kernel& kernel, const target::Gpu& gpu);

}  // namespace kiln::kernel

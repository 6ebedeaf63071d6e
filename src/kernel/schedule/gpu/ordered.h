// Scans and sorts on a GPU.
#pragma once

#include <optional>

#include "kernel/kernel.h"
#include "kernel/schedule/gpu/schedule.h"
#include "target/target.h"

namespace kiln::kernel {

// Of a kernel of kind kScan, where blocks had better share what one thread would take in order.
std::optional<GpuSchedule> ScheduleGpuScan(const Kernel& kernel, const target::Gpu& gpu);

// Of a kernel of kind kSort.
GpuSchedule ScheduleGpuSort(const Kernel& kernel, const target::Gpu& gpu);

}  // namespace kiln::kernel

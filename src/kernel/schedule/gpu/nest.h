// Chooses how kernels run on a GPU. Schedules depend on kernel and target alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/schedule/gpu/schedule.h"
#include "target/target.h"

namespace kiln::kernel {

// The one load that walks memory across the innermost outer variable (`column`) while an outer one
// (`row`) walks along it: what a transpose brings through shared memory.
struct TransposeLoad {
  NodeId node;  // of stage 0
  VariableId row, column;
};
std::optional<TransposeLoad> FindTransposeLoad(const Kernel& kernel);

GpuSchedule ScheduleGpu(const Kernel& kernel, const target::Gpu& gpu);

// A grid for kernels side by side: each has blocks of its own, all of one size. `parts` become the
// kernels' schedules; returns the grid's.
GpuSchedule ScheduleSideBySide(const std::vector<const Kernel*>& kernels, const target::Gpu& gpu,
                               std::vector<GpuSchedule>& parts);

}  // namespace kiln::kernel

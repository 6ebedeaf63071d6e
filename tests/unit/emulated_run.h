// Kernels of a graph on the emulated GPU.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/emulated/emulator.h"
#include "plan/plan.h"

namespace kiln::testing {

// Runs what codegen::GenerateEmulated made, looking for conflicts in global memory, too.
Status RunEmulated(const plan::ScheduledKernel& kernel, const std::string& object,
                   std::span<void* const> args);

// On threads that tests share.
Status RunEmulated(const device::EmulatedKernel& kernel, const device::GpuGrid& grid,
                   std::span<const device::GpuSpan> args, const device::EmulatorOptions& options);

}  // namespace kiln::testing

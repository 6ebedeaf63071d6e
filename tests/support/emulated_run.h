// Kernels on the emulated GPU.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "device/emulated/emulator.h"

namespace kiln::testing {

// On threads that tests share.
Status RunEmulated(const device::EmulatedKernel& kernel, const device::GpuGrid& grid,
                   std::span<const device::GpuSpan> args, const device::EmulatorOptions& options);

}  // namespace kiln::testing

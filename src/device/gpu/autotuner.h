// Times of a gemm by our kernel and by the machine's library.
#pragma once

#include <span>

#include "base/status.h"
#include "device/gpu/device.h"
#include "device/gpu/steps.h"

namespace kiln::device {

struct GpuLibraryCall;  // library_gemm.h

struct GemmTimes {
  double ours = 0, library = 0;  // microseconds
};

// Medians of runs on the device's stream, with arrays of their own, on a machine with a clock.
// Takes about 50 ms at most, or as long as one run of both.
Result<GemmTimes> MeasureGemm(GpuDevice& device, const GpuLibraryCall& call,
                              std::span<const GpuCommand> ours);

}  // namespace kiln::device

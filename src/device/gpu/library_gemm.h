// Gemms by the machine's library: the choice for each gemm of a program.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "device/gpu/device.h"
#include "device/gpu/machine.h"
#include "device/gpu/steps.h"
#include "program/library_gemm.h"
#include "program/program.h"

namespace kiln::device {

struct GpuLibraryCall {
  program::LibraryGemm what;
  std::unique_ptr<GpuLibraryGemm> gemm;
};

// The replacement of our launches of a kernel, by the device's choices; null for none. Without a
// recorded choice it measures both, and waits for the device. Never fails: problems are noted, and
// our launches are always correct.
std::unique_ptr<GpuLibraryCall> ChooseLibrary(GpuDevice& device, const program::Kernel& kernel,
                                              std::span<const GpuCommand> ours);

}  // namespace kiln::device

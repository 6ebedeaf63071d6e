// Products of matrices by the machine's library: which of a program's go that way.
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
  std::unique_ptr<GpuLibraryGemm> product;
};

// What takes the place of our launches of a kernel, by the device's choices; null where nothing
// does. Measures both where nothing says which is faster, which waits for the device. Never fails:
// what goes wrong is noted, and our launches are right.
std::unique_ptr<GpuLibraryCall> ChooseLibrary(GpuDevice& device, const program::Kernel& kernel,
                                              std::span<const GpuCommand> ours);

}  // namespace kiln::device

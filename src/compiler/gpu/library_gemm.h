// Kernels that are gemms as a library makes them.
#pragma once

#include <optional>

#include "kernel/scheduled_kernel.h"
#include "program/library_gemm.h"

namespace kiln::compiler {

// The gemm that the kernel, which is scheduled for a GPU, is. Nothing where it does anything else.
std::optional<program::LibraryGemm> AsLibraryGemm(const kernel::ScheduledKernel& scheduled);

}  // namespace kiln::compiler

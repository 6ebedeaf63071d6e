// The input of code generation: the program, and the compiler's data on its kernels.
#pragma once

#include <string>
#include <vector>

#include "kernel/scheduled_kernel.h"
#include "program/program.h"

namespace kiln::codegen {

using ScheduledKernels = IdVector<program::KernelId, kernel::ScheduledKernel>;

struct LoweredProgram {
  program::Program program;
  ScheduledKernels kernels;

  const kernel::ScheduledKernel& KernelOf(const program::Launch& launch) const {
    return kernels[launch.kernel];
  }
  // The program's steps, then the kernels with their schedules.
  std::string ToString() const;
};

}  // namespace kiln::codegen

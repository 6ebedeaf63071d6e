// One launch of kernels that run side by side.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "codegen/lowered_program.h"
#include "kernel/schedule/scheduler.h"
#include "kernel/scheduled_kernel.h"

namespace kiln::compiler {

// Of one part: its kernel, and the names of its ops.
struct PartLaunch {
  program::KernelId kernel;
  std::vector<std::string> op_names;
};

// The kernel that runs all parts side by side; its launch has the parts' arguments, in order.
// INTERNAL if a kernel is no part of bundles: the pass that makes them has asked.
Result<kernel::ScheduledKernel> BundleOf(const std::string& name,
                                         const kernel::Scheduler& scheduler,
                                         const codegen::ScheduledKernels& kernels,
                                         const std::vector<PartLaunch>& parts);

}  // namespace kiln::compiler

// Launches that run side by side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernel/schedule/scheduler.h"
#include "kernel/scheduled_kernel.h"
#include "program/program.h"

namespace kiln::compiler {

// The bundle of the launches that may be part of one, if it pays.
// They leave `launches` and `op_names`, in which the bundle's launch takes the first place; its
// kernel is not set.
std::optional<kernel::ScheduledKernel> BundleLaunches(
    const std::string& name, const kernel::Scheduler& scheduler,
    const std::vector<kernel::ScheduledKernel>& kernels, std::vector<program::Launch>& launches,
    std::vector<std::vector<std::string>>& op_names);

}  // namespace kiln::compiler

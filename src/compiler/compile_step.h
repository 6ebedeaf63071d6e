// Programs of a single step, for execution op by op.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/backend.h"
#include "kernel/scheduled_kernel.h"
#include "program/program.h"

namespace kiln::compiler {

// The launch of a kernel, fully described by `text`. Its arguments are leaves of the program's
// arguments, one each, as large as `args`; those that it writes are among them.
Result<program::Artefact> CompileLaunch(const kernel::ScheduledKernel& kernel,
                                        std::string_view text,
                                        const std::vector<program::Slice>& args,
                                        const Backend& backend);

// The same of a call. Arguments that are one slice are one, which the function must know.
Result<program::Artefact> CompileHostCall(const program::HostCall& call,
                                          const program::LaunchInfo& info, const Backend& backend);

// All of a kernel that its code depends on: equal text, equal code for one target.
std::string KernelText(const kernel::ScheduledKernel& kernel);

}  // namespace kiln::compiler

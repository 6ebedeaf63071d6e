// A scatter as a kernel of its kind.
#pragma once

#include <functional>

#include "base/status.h"
#include "ir/ir.h"
#include "kernel/kernel.h"
#include "kernel/values.h"

namespace kiln::kernel {

// Fills the kernel, which has its parameters and one empty stage, the one of `values`. Outputs
// begin at parameter `first_output`; `param_of` gives the parameter that an instruction is, if it
// is one. Outer variables are those without shared elements of the results between two points:
// batching dimensions, dimensions of slices that begin at 0 there, and all where the indices are
// unique and slices do not overlap. UNIMPLEMENTED if the computation is no combiner, or the
// operands are computed in the kernel.
Status BuildScatter(const ir::Instruction& scatter, ParamId first_output,
                    const std::function<ParamId(const ir::Instruction&)>& param_of,
                    StageValues& values, Kernel& kernel);

}  // namespace kiln::kernel

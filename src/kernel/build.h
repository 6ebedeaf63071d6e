// From a group of instructions to the kernel that computes it.
#pragma once

#include <string>

#include "base/status.h"
#include "ir/ir.h"
#include "kernel/group.h"
#include "kernel/kernel.h"

namespace kiln::kernel {

// The kernel; layouts are those of the shapes. UNIMPLEMENTED, with the reason, if the group is not
// one kernel. This is the authoritative answer for the fusion pass.
Result<Kernel> BuildKernel(const Group& group, std::string name);

// Whether an instruction's value at an index is a formula of its operands' values at indices: such
// ops may be fused into any consumer.
bool IsElemental(const ir::Instruction& instruction);

}  // namespace kiln::kernel

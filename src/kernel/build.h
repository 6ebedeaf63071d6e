// From a group of instructions to the kernel that computes it.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"
#include "kernel/kernel.h"

namespace kiln::kernel {

// A group: `roots` are the stored values, `inputs` the read ones (in the order of the kernel's
// input parameters); everything between belongs to the kernel. Outputs follow inputs, in order.
struct Group {
  std::vector<const ir::Instruction*> roots;
  std::vector<const ir::Instruction*> inputs;
};

// The group of a fusion (its computation's parameters and root, a tuple's elements being several
// roots), or of one instruction alone (its operands and itself; a reduce of several operands has
// several outputs). Operands that are tuples are not inputs of kernels.
Group GroupOf(const ir::Instruction& instruction);

// The kernel; layouts are those of the shapes. UNIMPLEMENTED, with the reason, if the group is not
// one kernel. This is the authoritative answer for the fusion pass.
Result<Kernel> BuildKernel(const Group& group, std::string name);

// Whether an instruction's value at an index is a formula of its operands' values at indices: such
// ops may be fused into any consumer.
bool IsElemental(const ir::Instruction& instruction);

}  // namespace kiln::kernel

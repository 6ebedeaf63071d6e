// From a group of instructions to the kernel that computes it.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"
#include "kernel/kernel.h"

namespace kiln::kernel {

// A group: `roots` are what it stores, `inputs` the values it reads (in the order of the kernel's
// input parameters); everything between belongs to the kernel. Outputs follow inputs, in order.
struct Group {
  std::vector<const ir::Instruction*> roots;
  std::vector<const ir::Instruction*> inputs;
};

// The group of a fusion (its computation's parameters and root, a tuple's elements being several
// roots), or of one instruction alone (its operands and itself; a reduce of several operands has
// several outputs). Operands that are tuples are not inputs of kernels.
Group GroupOf(const ir::Instruction& instruction);

// The kernel; layouts are those of the shapes. UNIMPLEMENTED, saying why, where the group is not
// one kernel: the fusion pass asks the same question before it fuses, and this is the answer that
// holds.
Result<Kernel> BuildKernel(const Group& group, std::string name);

// Whether an instruction's value at an index is a formula of its operands' values at indices: what
// may be fused into any consumer.
bool IsElemental(const ir::Instruction& instruction);

}  // namespace kiln::kernel

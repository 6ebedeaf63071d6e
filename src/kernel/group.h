// Groups of instructions, of which kernels are made.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/ir.h"

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

// What is between, in an order in which operands come first.
std::vector<const ir::Instruction*> MembersOf(const Group& group);

// Kernel::op_names: those of the members, except constants.
std::vector<std::string> OpNamesOf(std::span<const ir::Instruction* const> members);

}  // namespace kiln::kernel

// Sorts as kernels of their kind.
#pragma once

#include "base/status.h"
#include "ir/ir.h"
#include "kernel/kernel.h"
#include "kernel/values.h"

namespace kiln::kernel {

// Whether the instruction is a sort, or a topk, which is one too.
bool IsSort(const ir::Instruction& instruction);

// Fills the kernel, which has its parameters and one empty stage, the one of `values`. Outputs
// begin at parameter `first_output`. UNIMPLEMENTED where the computation is made of more than
// elementwise ops on scalars.
Status BuildSort(const ir::Instruction& sort, ParamId first_output, StageValues& values,
                 Kernel& kernel);

// The order that a comparator of so many operands makes by one number of each element, if it does.
std::optional<SortKey> KeyOf(const Combiner& comparator, int64_t operands);

}  // namespace kiln::kernel

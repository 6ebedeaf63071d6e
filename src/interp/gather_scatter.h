// Ops that read or write slices at positions given by operands.
#pragma once

#include "base/status.h"
#include "interp/region.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

// dynamic-slice, dynamic-update-slice and gather.
Result<Literal> EvaluateIndexedOp(const ir::Instruction& instruction,
                                  std::span<const Literal* const> operands);

// dynamic-update-slice in place of its operand.
void UpdateSlice(Literal& x, std::span<const Literal* const> update_then_starts);

Result<Literal> EvaluateScatter(const ir::Instruction& instruction,
                                std::span<const Literal* const> operands,
                                const RegionContext& context);

}  // namespace kiln::interp

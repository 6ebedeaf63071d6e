// Reductions.
#pragma once

#include "base/status.h"
#include "interp/region.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

Result<Literal> EvaluateReduce(const ir::Instruction& instruction,
                               std::span<const Literal* const> operands,
                               const RegionContext& context);

}  // namespace kiln::interp

// Ops that put elements in order.
#pragma once

#include "base/status.h"
#include "interp/region.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

Result<Literal> EvaluateSort(const ir::Instruction& instruction,
                             std::span<const Literal* const> operands,
                             const RegionContext& context);

Result<Literal> EvaluateTopK(const ir::Instruction& instruction,
                             std::span<const Literal* const> operands);

}  // namespace kiln::interp

// Ops with windows that move over an array.
#pragma once

#include <span>

#include "base/status.h"
#include "interp/region.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

Result<Literal> EvaluateConvolution(const ir::Instruction& instruction,
                                    std::span<const Literal* const> operands);
Result<Literal> EvaluatePatches(const ir::Instruction& instruction,
                                std::span<const Literal* const> operands);
Result<Literal> EvaluateSelectAndScatter(const ir::Instruction& instruction,
                                         std::span<const Literal* const> operands,
                                         const RegionContext& context);

}  // namespace kiln::interp

// Sums of products.
#pragma once

#include "base/status.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

Result<Literal> EvaluateDot(const ir::Instruction& instruction,
                            std::span<const Literal* const> operands);

}  // namespace kiln::interp

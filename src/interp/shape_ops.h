// Ops that move elements, and iota.
#pragma once

#include "base/status.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

Result<Literal> EvaluateShapeOp(const ir::Instruction& instruction,
                                std::span<const Literal* const> operands);

}  // namespace kiln::interp

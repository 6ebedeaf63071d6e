// Elementwise ops on single values: the semantics of ops.def, by the letter.
#pragma once

#include "base/status.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

Result<Literal> EvaluateElementwise(const ir::Instruction& instruction,
                                    std::span<const Literal* const> operands);

}  // namespace kiln::interp

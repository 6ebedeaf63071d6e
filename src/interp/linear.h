// Transforms and decompositions, by their definitions and in wider numbers.
#pragma once

#include <span>

#include "base/status.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

// UNIMPLEMENTED for element types that are none of the ops'.
Result<Literal> EvaluateFft(const ir::Instruction& i, std::span<const Literal* const> operands);
Result<Literal> EvaluateCholesky(const ir::Instruction& i,
                                 std::span<const Literal* const> operands);
Result<Literal> EvaluateTriangularSolve(const ir::Instruction& i,
                                        std::span<const Literal* const> operands);

}  // namespace kiln::interp

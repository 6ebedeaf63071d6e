// Transforms and decompositions, by definition and in wider types.
#pragma once

#include <span>

#include "base/status.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

// UNIMPLEMENTED for unsupported element types.
Result<Literal> EvaluateFft(const ir::Instruction& i, std::span<const Literal* const> operands);
Result<Literal> EvaluateCholesky(const ir::Instruction& i,
                                 std::span<const Literal* const> operands);
Result<Literal> EvaluateTriangularSolve(const ir::Instruction& i,
                                        std::span<const Literal* const> operands);

}  // namespace kiln::interp

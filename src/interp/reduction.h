// Reductions and dots.
#pragma once

#include "base/status.h"
#include "interp/interpreter.h"

namespace kiln::interp {

Result<Literal> EvaluateReduce(const ir::Instruction& instruction,
                               std::span<const Literal* const> operands, const Options& options);
Result<Literal> EvaluateDot(const ir::Instruction& instruction,
                            std::span<const Literal* const> operands);

}  // namespace kiln::interp

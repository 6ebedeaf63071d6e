// Batch normalisation.
#pragma once

#include <span>

#include "base/status.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

// batch-norm-training, batch-norm-inference and batch-norm-grad, in double, rounded once.
Result<Literal> EvaluateBatchNorm(const ir::Instruction& instruction,
                                  std::span<const Literal* const> operands);

}  // namespace kiln::interp

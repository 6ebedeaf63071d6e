// Ops that move elements, and iota.
#pragma once

#include "base/status.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

Result<Literal> EvaluateShapeOp(const ir::Instruction& instruction,
                                std::span<const Literal* const> operands);

// Copies elements: result element `index` from element offset + sum of index * stride of `from`.
void CopyStrided(const Literal& from, int64_t offset, std::span<const int64_t> strides,
                 Literal& to);

}  // namespace kiln::interp

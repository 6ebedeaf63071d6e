// Operations that reduce elements by a region.
#pragma once

#include "stablehlo/import/op.h"

namespace kiln::stablehlo {

// The values of an op whose region 0 takes two scalars for each of its N results. Operands are, of
// reduce and reduce-window, N arrays and N initial values; of scatter N arrays, indices and N
// arrays of updates; of others N arrays. They are converted to the region's types.
Result<Values> Fold(Op& op, Opcode opcode, Attributes attributes);

// An instruction converted to the type of a region's argument.
Result<ir::Instruction*> ConvertTo(Op& op, ir::Instruction* x, const mlir::Type& from,
                                   const mlir::Type& to);

}  // namespace kiln::stablehlo

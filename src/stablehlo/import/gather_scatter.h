// Gathers, for operations with the sizes of slices in an attribute or in an operand.
#pragma once

#include "stablehlo/import/op.h"

namespace kiln::stablehlo {

// Operands 0 and 1 of an operation with the attributes of stablehlo.gather.
Result<ir::Instruction*> GatherOf(Op& op, Ints slice_sizes);

}  // namespace kiln::stablehlo

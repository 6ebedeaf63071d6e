// HLO's compare with type=TOTALORDER, by ops that say the same.
#pragma once

#include "ir/ir.h"

namespace kiln::ir {

// Appends to the operand's computation what makes signed integers of floats that are in the order
// of the floats' total order (IEEE 754): the bits, with all but the sign inverted where it is set.
Instruction* TotalOrderKey(Computation& computation, Instruction* x);

}  // namespace kiln::ir

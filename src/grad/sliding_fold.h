// Reductions over windows by other ops.
#pragma once

#include "grad/builder.h"

namespace kiln::grad {

// The value of a reduce-window by any function, of one or several operands: of windows that slide,
// halves are computed once for all places. The number of steps is the logarithm of the window's
// size.
ir::Instruction* SlidingFold(Builder& b, ir::Instruction* op);

}  // namespace kiln::grad

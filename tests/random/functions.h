// Elementary functions, for the generators of random modules.
#pragma once

#include "random/maker.h"

namespace kiln::testing {

// A function of the float array `x` that is steep, or has no value, where its operand is then kept
// from. Its results are no more exact than `x`; `rounds` tells that they are less.
RandomOp RandomFunction(const RandomSource& source, ir::Instruction* x, bool exact);

}  // namespace kiln::testing

// Ops that give elements other places, for the generators of random modules.
#pragma once

#include "random/maker.h"

namespace kiln::testing {

// The operand with neighbouring dimensions merged, or one split by a divisor, or one of size 1 put
// in.
ir::Instruction* RandomReshape(const RandomSource& source, ir::Instruction* x);
ir::Instruction* RandomTranspose(const RandomSource& source, ir::Instruction* x);
// Starts, limits and strides along some dimensions.
ir::Instruction* RandomSlice(const RandomSource& source, ir::Instruction* x);
// Nothing where x is too large.
ir::Instruction* RandomPad(const RandomSource& source, ir::Instruction* x);
// One of these, or a reverse.
ir::Instruction* RandomShapeOp(const RandomSource& source, ir::Instruction* x);

// Gives entry arrays and parameters layouts other than row-major: those that no op takes as the
// memory that it is.
void AddRandomLayouts(ir::Computation& entry, std::mt19937_64& random);

}  // namespace kiln::testing

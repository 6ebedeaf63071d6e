// Scatters by any computation, as loops.
#pragma once

#include "grad/builder.h"

namespace kiln::grad {

// The value of a scatter, of one or several operands, by a loop over its index vectors: each slice
// is read, combined with its update, and written.
ir::Instruction* ScatterLoop(Builder& b, ir::Instruction* op);

}  // namespace kiln::grad

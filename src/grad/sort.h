// Positions of elements in order.
#pragma once

#include "ir/ir.h"

namespace kiln::grad {

// Whether x has the positions of elements along dimension d.
bool CountsAlong(const ir::Instruction* x, int64_t d);

}  // namespace kiln::grad

// Computations that reductions fold with, for the generators of random modules.
#pragma once

#include "ir/ir.h"

namespace kiln::testing {

ir::Computation* Reducer(ir::Module& module, Opcode opcode, ElementType type);
// max by the first operand, carrying the second along; the later one on ties.
ir::Computation* ArgMax(ir::Module& module, ElementType key, ElementType value);

}  // namespace kiln::testing

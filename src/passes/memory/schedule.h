// The order in which instructions run.
#pragma once

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::passes {

// Gives every while and conditional computations of its own, so that each has one caller and one
// place in the program.
Result<bool> FlattenCallGraph(ir::Module& module);

// Puts each computation's instructions into an order in which few bytes are live at once: the best
// of depth first from the root, with operands that need more memory first or as they stand, and
// greedily what frees most.
Result<bool> Schedule(ir::Module& module);

}  // namespace kiln::passes

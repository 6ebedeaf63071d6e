// The order in which instructions run.
#pragma once

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::passes {

// Gives every while and conditional computations of its own, so that each has one caller and one
// place in the program.
Result<bool> FlattenCallGraph(ir::Module& module);

// Orders each computation's instructions for few live bytes: the best of depth first from the root,
// with operands of more memory first or in their order, and of a greedy order by freed bytes.
Result<bool> Schedule(ir::Module& module);

}  // namespace kiln::passes

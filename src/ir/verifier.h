// The invariants of a module, checked after every pass in debug builds and tests.
#pragma once

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::ir {

// Fails with INTERNAL, naming the instruction: operands before users and in the same computation,
// users and operands in step, names unique, parameters numbered without gaps, arities, shapes equal
// to what inference says (layouts apart), called computations in the module and without recursion,
// literals of their shape, a root, aliases that fit.
Status Verify(const Module& module);

}  // namespace kiln::ir

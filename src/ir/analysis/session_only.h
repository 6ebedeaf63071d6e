// Ops that run in sessions only, and programs that therefore have no code.
#pragma once

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::ir {

// The session-only instruction because of which an instruction has no code: itself, or the first in
// its called computations; or null.
const Instruction* SessionOnlyIn(const Instruction& instruction);

// Fails with INVALID_ARGUMENT, and names the op and the reason, if the entry or a computation that
// it calls has a session-only op.
Status CheckNotSessionOnly(const Module& module);

}  // namespace kiln::ir

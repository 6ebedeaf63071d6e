// The marks of ops that sessions read: HLO's frontend attributes (ir/frontend_attributes.h).
#pragma once

#include <vector>

#include "ir/ir.h"
#include "session/clustering.h"

namespace kiln::session {

// The JIT marks; any text but "true" and "false" is none.
JitMark JitMarkOf(const ir::Instruction& instruction);

// The control dependencies of a computation.
std::vector<ControlEdge> ControlEdgesOf(const ir::Computation& computation);

}  // namespace kiln::session

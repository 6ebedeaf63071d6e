// Loops of few iterations as straight code.
#pragma once

#include "ir/ir.h"

namespace kiln::passes {

// The state behind a loop over arrays whose iterations are cheap element by element, with a copy of
// the body for each of a few iterations, before the loop; null for other loops. As a loop each
// iteration reads and writes its arrays; the copies are one kernel.
ir::Instruction* UnrolledOverArrays(ir::Instruction* loop);

}  // namespace kiln::passes

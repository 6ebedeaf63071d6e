// Computations that fold elements, as combiners.
#pragma once

#include "base/status.h"
#include "ir/ir.h"
#include "kernel/kernel.h"

namespace kiln::kernel {

// The computation that an instruction calls takes 2n scalars and gives n. UNIMPLEMENTED where it
// holds more than elementwise ops and constants.
Result<Combiner> CombinerOf(const ir::Instruction& user);

// A combiner that is one op of two arguments of a type: the sum of a dot.
Combiner CombinerOf(Opcode opcode, ElementType type);

}  // namespace kiln::kernel

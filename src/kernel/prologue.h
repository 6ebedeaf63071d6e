// Prologues: computation fused into the reading of a gemm's operand.
#pragma once

#include "ir/ir.h"

namespace kiln::kernel {

class Scheduler;  // schedule/scheduler.h

// Whether `producer`, an elementwise op or a fusion of such, may be fused into the reading of a
// dot's operand, and costs less there than in memory: it is computed from one array, in memory
// anyway, and from scalars of the array, a row or a column. `consumer` is the dot, or a fusion with
// one.
bool MayBePrologue(const ir::Instruction& producer, const ir::Instruction& consumer,
                   const Scheduler& scheduler);

}  // namespace kiln::kernel

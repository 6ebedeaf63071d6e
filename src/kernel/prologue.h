// What may be computed of a matrix product's operand while it is read.
#pragma once

#include "ir/ir.h"

namespace kiln::kernel {

class Scheduler;  // schedule/scheduler.h

// Whether `producer`, an elementwise op or a fusion of such, may be computed on the elements of a
// dot's operand as the product reads them, and costs less there than in memory: it is made of one
// array, which is in memory anyway, and of numbers that all elements, or those of a row or column,
// have in common. `consumer`
// is the dot, or a fusion with one.
bool MayBePrologue(const ir::Instruction& producer, const ir::Instruction& consumer,
                   const Scheduler& scheduler);

}  // namespace kiln::kernel

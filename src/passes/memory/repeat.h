// The cost of computing a value again, beside that of keeping it.
#pragma once

#include <cstdint>

#include "ir/ir.h"

namespace kiln::passes {

// The cost of a byte that is kept.
inline constexpr int64_t kCostToKeep = 64;

// The cost of computing a value again, or -1 for one that is not. Without effort these are ops that
// fusion puts into the kernels that read them: elementwise ones and views. With
// PassContext::memory_effort other moves, reductions and products are repeated, too, and each step
// halves all costs.
int64_t CostToRepeat(const ir::Instruction& i, int effort);

}  // namespace kiln::passes

// The work of the evaluator, as counted by budgets.
#pragma once

#include <cstdint>

#include "ir/ir.h"

namespace kiln::interp {

// The unit is an elementwise op on one element, some 10 ns. The fixed cost of an instruction, and
// of an instruction of a reducer on slots.
inline constexpr int64_t kInstructionWork = 64;
inline constexpr int64_t kReducerWork = 4;

// The approximate work of an instruction, at least its number of result elements, and at most 2^60,
// without the work of its called computations.
int64_t WorkOf(const ir::Instruction& i);

}  // namespace kiln::interp

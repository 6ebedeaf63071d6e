// How long the evaluator takes: what budgets count.
#pragma once

#include <cstdint>

#include "ir/ir.h"

namespace kiln::interp {

// The unit is an elementwise op on one element, some 10 ns. An instruction costs so much whatever
// it does, and so much where it is one of a computation that is applied to scalars in their slots.
inline constexpr int64_t kInstructionWork = 64;
inline constexpr int64_t kReducerWork = 4;

// What evaluating an instruction takes, no less than the elements that it makes: roughly, and at
// most 2^60. What the computations take that it calls is not in it.
int64_t WorkOf(const ir::Instruction& i);

}  // namespace kiln::interp

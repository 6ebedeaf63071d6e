// Random numbers.
#pragma once

#include <span>

#include "base/status.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

// With a state of its own: see base/random_state.h.
Result<Literal> EvaluateRng(const ir::Instruction& instruction,
                            std::span<const Literal* const> operands);
// rng-get-and-update-state.
Literal EvaluateRngState(const ir::Instruction& instruction);
// A tuple of the next state and the bits.
Result<Literal> EvaluateRngBitGenerator(const ir::Instruction& instruction,
                                        std::span<const Literal* const> operands);

}  // namespace kiln::interp

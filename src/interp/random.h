// Bits of random number generators.
#pragma once

#include <span>

#include "base/status.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

// rng-bit-generator on its state: a tuple of the next state and the bits.
Result<Literal> EvaluateRngBitGenerator(const ir::Instruction& instruction,
                                        std::span<const Literal* const> operands);

}  // namespace kiln::interp

// The reference evaluator: slow, obvious, right. The judge of compiled code.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

struct Options {
  // Fails with DEADLINE_EXCEEDED after so many executed instructions: fuzzing meets endless loops.
  int64_t max_instructions = INT64_MAX;
};

// The entry computation's result. Arguments must have the parameters' shapes (layouts apart).
Result<Literal> Evaluate(const ir::Module& module, std::span<const Literal> arguments,
                         const Options& options = {});
Result<Literal> Evaluate(const ir::Computation& computation, std::span<const Literal> arguments,
                         const Options& options = {});

// One instruction on the values of its operands; constant folding is made of it.
Result<Literal> EvaluateInstruction(const ir::Instruction& instruction,
                                    std::span<const Literal* const> operands);

}  // namespace kiln::interp

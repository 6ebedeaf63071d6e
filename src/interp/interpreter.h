// The reference evaluator: slow, obvious, right. The reference for compiled code.
#pragma once

#include <span>

#include "base/status.h"
#include "interp/options.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

// The entry computation's result. Arguments must have the parameters' shapes (layouts apart). A
// value of bounded dimensions is a literal of its actual sizes.
Result<Literal> Evaluate(const ir::Module& module, std::span<const Literal> arguments,
                         const Options& options = {});
Result<Literal> Evaluate(const ir::Computation& computation, std::span<const Literal> arguments,
                         const Options& options = {});

// One instruction on the values of its operands, as used by constant folding.
Result<Literal> EvaluateInstruction(const ir::Instruction& instruction,
                                    std::span<const Literal* const> operands,
                                    const Options& options = {});

}  // namespace kiln::interp

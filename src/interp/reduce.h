// Reductions.
#pragma once

#include <functional>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

// What a reduce needs of the evaluation around it.
struct ReduceContext {
  // A computation's result, a tuple's elements one by one.
  std::function<Result<std::vector<Literal>>(const ir::Computation&, std::vector<Literal>)> call;
  // Fails once more instructions than allowed have been executed.
  std::function<Status(int64_t instructions)> charge;
};

Result<Literal> EvaluateReduce(const ir::Instruction& instruction,
                               std::span<const Literal* const> operands,
                               const ReduceContext& context);

}  // namespace kiln::interp

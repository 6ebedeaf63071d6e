// The reference evaluator: slow, obvious, right. The judge of compiled code.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/interrupt.h"
#include "base/status.h"
#include "ir/ir.h"
#include "tensor/literal.h"
#include "tensor/probes.h"

namespace kiln::interp {

// What a custom call does: from the arrays of its operands to those of its result, one by one and
// in order; tokens are left out.
using CustomCall = std::function<Result<std::vector<Literal>>(
    const ir::Instruction& call, std::span<const Literal* const> operands)>;

struct Options {
  // Fails with DEADLINE_EXCEEDED before it does more work, in the units of interp/work.h: programs
  // may have endless loops. As each array's elements are counted before it is made, memory is
  // bounded, too.
  int64_t max_work = INT64_MAX;
  // Unless null, the work that was done is added to it.
  int64_t* work_done = nullptr;
  // Looked at as work is charged.
  Interrupt interrupt;
  // Null: custom calls are NOT_FOUND, but for markers, which give their operand.
  // What the evaluator has itself, see interp/harness.h, does not come here.
  CustomCall custom_call = nullptr;
  // Gets what programs print; null: nobody does.
  std::function<void(std::string_view text)> print = nullptr;
  // Where probes keep what they are given; null: it is this evaluation's alone.
  Probes* probes = nullptr;
};

// The entry computation's result. Arguments must have the parameters' shapes (layouts apart).
// A value of bounded dimensions is a literal of the sizes that it has.
Result<Literal> Evaluate(const ir::Module& module, std::span<const Literal> arguments,
                         const Options& options = {});
Result<Literal> Evaluate(const ir::Computation& computation, std::span<const Literal> arguments,
                         const Options& options = {});

// One instruction on the values of its operands; constant folding is made of it.
Result<Literal> EvaluateInstruction(const ir::Instruction& instruction,
                                    std::span<const Literal* const> operands,
                                    const Options& options = {});

}  // namespace kiln::interp

// What users choose about derivatives.
#pragma once

#include <functional>

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::grad {

struct Options {
  // Reverse mode of loops: the body is computed again from its state, the only thing that is stored
  // for each iteration. Otherwise the values that the derivative reads are stored.
  bool recompute_loops = false;

  // The backward computation of a custom call, in its module (see CheckRule()); null where the
  // target has none.
  std::function<Result<ir::Computation*>(const ir::Instruction& call)> backward_of = nullptr;

  // Loops, branches and calls that get more results are replaced: `op` is gone, `now` is its value.
  // Not called by a differentiation that fails.
  std::function<void(ir::Instruction* op, ir::Instruction* now)> replaced = nullptr;
};

}  // namespace kiln::grad

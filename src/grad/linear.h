// Derivatives of the library's functions of matrices, "lapack.NAME" as targets of custom calls.
#pragma once

#include <string_view>

#include "grad/reverse.h"

namespace kiln::grad {

struct LinearFunction {
  std::string_view target;
  // The tangent of the result by that of `source`, the value of which the result is a function;
  // null where the call is another's.
  Reverse::TangentOfOp* tangent;
  ir::Instruction* (*source)(const ir::Instruction& call);
};

// Null: it has none.
const LinearFunction* FindLinearFunction(const ir::Instruction& call);

}  // namespace kiln::grad

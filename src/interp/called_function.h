// Custom calls as those see them who have the functions.
#pragma once

#include "interp/options.h"
#include "ir/ir.h"

namespace kiln::interp {

CalledFunction CalledFunctionOf(const ir::Instruction& call);

// What the module calls by Options::custom_call, where control may get to: calls that nobody makes
// are not there, nor is what custom calls call, but for the programs of a grid.
std::vector<CalledFunction> CalledFunctionsOf(const ir::Module& module);

}  // namespace kiln::interp

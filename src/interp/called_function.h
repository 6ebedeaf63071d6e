// Custom calls from the view of the functions' owner.
#pragma once

#include "interp/options.h"
#include "ir/ir.h"

namespace kiln::interp {

CalledFunction CalledFunctionOf(const ir::Instruction& call);

// The reachable calls of the module by Options::custom_call: without dead calls, and without the
// computations of custom calls, except the programs of a grid.
std::vector<CalledFunction> CalledFunctionsOf(const ir::Module& module);

}  // namespace kiln::interp

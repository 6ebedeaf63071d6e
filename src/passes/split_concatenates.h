// Concatenations of very many operands.
#pragma once

#include "passes/pass.h"

namespace kiln::passes {

// concatenate(x, ...) => concatenate(concatenate(x, ...), ...)   where a kernel would have to ask
// of each element which of very many operands it is from.
Result<bool> SplitConcatenates(ir::Module& module, const PassContext& context);

}  // namespace kiln::passes

// Tokens as values, for code that has none.
#pragma once

#include "passes/pass.h"

namespace kiln::passes {

// x : token[] => x' : pred[] for every value but the entry's parameters and results. Instructions
// after a token read its value, which is false, and so stay behind its producer.
Result<bool> ExpandTokens(ir::Module& module, const PassContext& context);

}  // namespace kiln::passes

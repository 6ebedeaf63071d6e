#pragma once

#include "passes/pass.h"

namespace kiln::passes {

// Truth values from outside, parameters of the entry and results of the user's functions, may be
// any byte. Where bytes might be passed on unchanged, they become 0 or 1.
Result<bool> NormalisePreds(ir::Module& module, const PassContext& context);

}  // namespace kiln::passes

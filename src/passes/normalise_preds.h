#pragma once

#include "passes/pass.h"

namespace kiln::passes {

// Truth values from outside, parameters of the entry and what functions of the user's have made,
// may be any byte: where bytes may be passed on as they are, 0 and 1 are made of them.
Result<bool> NormalisePreds(ir::Module& module, const PassContext& context);

}  // namespace kiln::passes

// Types under a byte, and floats of 8 bits and fewer, for code that has none of them.
#pragma once

#include "passes/pass.h"

namespace kiln::passes {

// x : s4[...] => x' : s8[...], x : f8e5m2[...] => bits(x) : u8[...]   for every value but the
// entry's parameters and results, whose bytes are the same. Integers are computed with as bytes and
// wrapped to their width again, floats as f32 and rounded, op by op.
Result<bool> ExpandNarrow(ir::Module& module, const PassContext& context);

}  // namespace kiln::passes

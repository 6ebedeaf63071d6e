// Bounded dimensions, for code that has constants alone.
#pragma once

#include "passes/pass.h"

namespace kiln::passes {

// p : f32[<=5] parameter => set-dimension-size(p : f32[5], 5)   of the entry, whose arguments are
// arrays of the bounds. Results of bounded dimensions, of which nobody would be told the sizes, are
// UNIMPLEMENTED.
Status PrepareBounded(ir::Module& module);

}  // namespace kiln::passes

// Bounded dimensions, for code that has constants alone.
#pragma once

#include "passes/pass.h"

namespace kiln::passes {

// p : f32[<=5] parameter => set-dimension-size(p : f32[5], 5)   of the entry, whose arguments are
// arrays of the bounds. Results of bounded dimensions, of which nobody would be told the sizes, are
// UNIMPLEMENTED.
Status PrepareBounded(ir::Module& module);

// x : f32[<=5] => (x' : f32[5], size : s32[])   for every value: an array of the bounds, in which
// all that lies beyond the sizes is rubbish that no op lets into its result. Sizes that do not fit,
// of which code cannot complain, are clamped, and of two the smaller one counts.
Result<bool> ExpandBounded(ir::Module& module, const PassContext& context);

}  // namespace kiln::passes

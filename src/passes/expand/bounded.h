// Bounded dimensions, for code that has constants alone.
#pragma once

#include "passes/pass.h"

namespace kiln::passes {

// p : f32[<=5] parameter => set-dimension-size(p : f32[5], 5)   of the entry, whose arguments are
// arrays of the bounds
// r : f32[<=5] root => f32[5] set-dimension-size(r, 5)   and so are its results, with zeros behind
// the sizes; get-dimension-size tells these
Status PrepareBounded(ir::Module& module);

// x : f32[<=5] => (x' : f32[5], size : s32[])   for every value: an array of the bounds. Elements
// beyond the sizes are undefined, and no op lets them into its result. Sizes out of range cannot be
// reported by code, and are clamped. Of two sizes for one dimension the smaller counts.
Result<bool> ExpandBounded(ir::Module& module, const PassContext& context);

}  // namespace kiln::passes

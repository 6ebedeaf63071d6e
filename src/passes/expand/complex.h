// Complex numbers as pairs of reals, for code that has no complex types.
#pragma once

#include "passes/pass.h"

namespace kiln::passes {

// x : c64[...] => (real(x), imag(x)) : (f32[...], f32[...]) for every value. The entry's parameters
// and results are excepted: their memory has the real and the imaginary part of each element side
// by side. Ops on complex numbers become ops on their parts; calls keep complex operands and
// results.
Result<bool> ExpandComplex(ir::Module& module, const PassContext& context);

}  // namespace kiln::passes

// Convolutions of all sorts, and the gradients of poolings, for the generators of random modules.
#pragma once

#include "random/maker.h"

namespace kiln::testing {

// A convolution of `x`, an array whose numbers are small. Where they are floats its results are not
// exact. Null where x has none.
ir::Instruction* RandomConvolution(const RandomSource& source, ir::Instruction* x);

// A select-and-scatter of `x`, whose elements must be exact. No results where x has none.
RandomOp RandomSelectAndScatter(const RandomSource& source, ir::Instruction* x);

}  // namespace kiln::testing

// Batch normalisation, for the generators of random modules.
#pragma once

#include "random/maker.h"

namespace kiln::testing {

// One of the three ops of batch normalisation on `x`, a float array of one dimension or more and
// some elements. Its results are not exact.
RandomOp RandomBatchNorm(const RandomSource& source, ir::Instruction* x);

}  // namespace kiln::testing

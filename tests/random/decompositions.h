// Fourier transforms, decompositions, triangular systems and sizes set at run time, for the
// generators of random modules.
#pragma once

#include "random/maker.h"

namespace kiln::testing {

// A transform of `x`, part of it with a size set at run time, or a function of small new matrices
// of its type, which are far from singular ones. Its results are not exact. None where x is no
// float or complex array.
RandomOp RandomDecomposition(const RandomSource& source, ir::Instruction* x);

}  // namespace kiln::testing

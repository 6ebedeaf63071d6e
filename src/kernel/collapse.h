// Merges iteration variables that every access walks as one, and splits one that accesses walk in
// pieces.
#pragma once

#include "kernel/kernel.h"

namespace kiln::kernel {

// Neighbouring variables of the same kind (outer, or inner of the same stages and both or neither
// reduced) become one where all indices stay as simple as they are: fewer loops, longer vectors.
// Drops variables of extent 1, and puts the outer ones in the order of the first output's memory.
void CollapseVariables(Kernel& kernel);

// In a kernel of one stage without inner variables: the last variable v becomes v div n and v mod
// n, if all indices are then linear in the latter, so that its pieces are read and written as
// vectors. Such indices are those of concatenated or padded arrays of n columns in an order of
// their own, as of the heads of an attention; or of what is put side by side n by n, as the parts
// of complex numbers.
void SplitPieces(Kernel& kernel);

// The most vectors that are interleaved: elements side by side that are made by one.
constexpr int64_t kMostInterleaved = 4;

}  // namespace kiln::kernel

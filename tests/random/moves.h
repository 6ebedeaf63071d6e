// Ops that move elements and bits, and that fold what windows hold, for the generators of random
// modules.
#pragma once

#include "random/maker.h"

namespace kiln::testing {

// A dynamic-slice, dynamic-update-slice, gather or scatter of `x`, an array. Indices are numbers of
// any integer type, a few of them outside of the array. No results where x has no such op.
RandomOp RandomIndexedOp(const RandomSource& source, ir::Instruction* x);

// A bitcast-convert, reduce-precision, get-dimension-size or reverse of `x`, whose elements must be
// exact. What was a float is an integer or, bit by bit, the float that it was.
RandomOp RandomBitsOp(const RandomSource& source, ir::Instruction* x);

// A reduce-window of `x`: sums, extrema or bits, often cumulative, sometimes of two operands.
RandomOp RandomReduceWindow(const RandomSource& source, ir::Instruction* x);

}  // namespace kiln::testing

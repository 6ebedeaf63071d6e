// Batch normalisation by other ops, for passes and for derivatives.
//
// The ops are those of Ioffe and Szegedy: Batch Normalization (2015), by the formulas of
// StableHLO's specification. Halves and smaller floats are computed as f32, and rounded at the end.
#pragma once

#include "ir/builder.h"

namespace kiln::ir {

// The value of batch-norm-training, -inference or -grad; of the first and the last it is a tuple.
Instruction* BatchNorm(Builder& b, Instruction* i);

}  // namespace kiln::ir

// Sorts and top-k, for the generators of random modules.
#pragma once

#include <functional>

#include "random/maker.h"

namespace kiln::testing {

// A sort of `x`, whose elements must be exact, and of other arrays of its dimensions, or a topk of
// it. `exact` says of an array whether it may be compared.
RandomOp RandomSort(const RandomSource& source, ir::Instruction* x,
                    const std::function<bool(const ir::Instruction*)>& exact);

}  // namespace kiln::testing

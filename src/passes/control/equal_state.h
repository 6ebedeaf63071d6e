// Elements of a loop's state that are always equal.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/ir.h"

namespace kiln::passes {

// For each element of the loop's state the first one that equals it before the loop and after every
// iteration: itself where there is none.
std::vector<int64_t> EqualState(const ir::Instruction& loop);

}  // namespace kiln::passes

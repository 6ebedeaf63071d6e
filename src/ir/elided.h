// Elements for constants whose text leaves them out, "{...}".
#pragma once

#include <cstdint>

#include "ir/ir.h"

namespace kiln::ir {

inline constexpr int64_t kSeededIntegers = 8;
// Fills an array with numbers that depend on the seed and the shape alone, on every platform:
// floats from -1 to 1, integers from 0 to below `bound`, or as far as the type goes.
void FillSeeded(Literal& literal, uint64_t seed, int64_t bound = kSeededIntegers);

// What the integers of a constant must be below, so that its users find all that they index with
// them; INT64_MAX where none does.
int64_t IndexBound(const Instruction& constant);

}  // namespace kiln::ir

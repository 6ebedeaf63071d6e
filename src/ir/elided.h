// Elements for constants whose text leaves them out, "{...}".
#pragma once

#include <cstdint>

#include "tensor/literal.h"

namespace kiln::ir {

inline constexpr int64_t kSeededIntegers = 8;
// Fills an array with numbers that depend on the seed and the shape alone, on every platform:
// floats from -1 to 1, integers from 0 to below `bound`, or as far as the type goes.
void FillSeeded(Literal& literal, uint64_t seed, int64_t bound = kSeededIntegers);

}  // namespace kiln::ir

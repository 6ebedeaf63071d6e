// Results that are put together of equal parts.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/ir.h"

namespace kiln::kernel {

// A dimension of a result that runs through several parts: index
//
//   (i * count + part) * inner + j
//
// belongs to element (i, j) of a part. Parts lie one behind the other where i is 0, and are
// interleaved where j is.
struct PartsDimension {
  int64_t dimension = 0, count = 1, inner = 1;
};

// The dimensions along which a root is concatenated of operands of one size, by itself, or before
// elementwise ops and reshapes, and the operands again in the same way. `is_input` tells whether an
// instruction is read from memory.
std::vector<PartsDimension> PartsOf(const ir::Instruction& root,
                                    const std::function<bool(const ir::Instruction&)>& is_input);

}  // namespace kiln::kernel

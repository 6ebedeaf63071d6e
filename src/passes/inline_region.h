// Computations of scalars on whole arrays.
#pragma once

#include <span>
#include <vector>

#include "ir/ir.h"

namespace kiln::passes {

// Copies the instructions of a kernel::IsScalarRegion to before `at`, each on all elements of its
// operands at once, with the dimensions and layout of `like`. The results: one, or the elements of
// the region's tuple.
std::vector<ir::Instruction*> InlineRegion(const ir::Computation& region,
                                           std::span<ir::Instruction* const> operands,
                                           const Shape& like, ir::Instruction* at);

}  // namespace kiln::passes

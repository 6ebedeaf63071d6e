// HLO's dynamic-reshape, as ops of the table.
#pragma once

#include <span>

#include "ir/builder.h"

namespace kiln::ir {

// The elements of the first operand, in row-major order of its sizes, as an array of the sizes that
// the other operands give: an integer scalar for each dimension of `shape`, within its bounds.
// Fails for other operands, and if the bounds hold another number of elements.
Instruction* DynamicReshape(Builder& b, std::span<Instruction* const> operands, const Shape& shape);

}  // namespace kiln::ir

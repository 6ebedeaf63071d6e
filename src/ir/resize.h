// Instructions on operands of other sizes.
#pragma once

#include <span>

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::ir {

// Whether a value of these sizes has a declared shape; sizes must be within bounds.
bool MayBe(const Shape& sizes, const Shape& declared);

// The instruction as declared for operands of these shapes, which may be smaller in dimensions that
// are bounded: with the inferred shape, and with the sizes in attributes that cover a whole
// dimension. `called` are the program shapes of the called computations. The spec has no operands.
// Fails if the sizes do not fit the op, or do not determine the result's of a reshape. A bounded
// dimension of the result that no operand has stays bounded.
Result<InstructionSpec> WithOperandShapes(const Instruction& i,
                                          std::span<const Shape* const> shapes,
                                          std::span<const ProgramShape> called);

// The error for a value of bounded dimensions whose sizes nothing tells.
Status SizesAreUnknown(const Shape& declared);

}  // namespace kiln::ir

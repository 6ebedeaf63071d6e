// What is known of a value's elements from how it was made. "No" means "not known".
#pragma once

#include <optional>

#include "ir/ir.h"

namespace kiln::passes::simplify {

// No element is below 0 or -0. NaNs may be among them.
bool IsNonNegative(const ir::Instruction* x);
// Every element is an integer, an infinity or a NaN.
bool IsIntegral(const ir::Instruction* x);
// Every element of the integer x is from 0 to below those of the constant c.
bool IsBelow(const ir::Instruction* x, const ir::Instruction* c);
// The greatest number that an element of the integer x can be, where none is negative.
std::optional<int64_t> LargestValue(const ir::Instruction* x);
// No element is an infinity or a NaN.
bool IsFinite(const ir::Instruction* x);

// Whether every value of one type is a value of the other.
bool HoldsAll(ElementType small, ElementType large);

}  // namespace kiln::passes::simplify

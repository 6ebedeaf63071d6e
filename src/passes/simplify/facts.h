// Facts about the elements of a value, from its definition. "No" means "not known".
#pragma once

#include <optional>

#include "ir/ir.h"

namespace kiln::passes::simplify {

// No element is below 0 or -0. NaNs may be among them.
bool IsNonNegative(const ir::Instruction* x);
// Every element is an integer, an infinity or a NaN.
bool IsIntegral(const ir::Instruction* x);
// 0 <= x < c for each element, of the integer x and the constant c.
bool IsBelow(const ir::Instruction* x, const ir::Instruction* c);
// The greatest possible element of the integer x, if none is negative.
std::optional<int64_t> LargestValue(const ir::Instruction* x);
// No element is an infinity or a NaN.
bool IsFinite(const ir::Instruction* x);

// Whether every value of one type is a value of the other.
bool HoldsAll(ElementType small, ElementType large);

}  // namespace kiln::passes::simplify

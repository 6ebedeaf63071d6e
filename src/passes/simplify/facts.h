// Facts about the elements of a value, from its definition. "No" means "not known".
#pragma once

#include <optional>

#include "ir/ir.h"

namespace kiln::passes::simplify {

// No element is below 0 or -0. NaNs may be among them.
bool IsNonNegative(const ir::Instruction* x);
// Every element is an integer, an infinity or a NaN.
bool IsIntegral(const ir::Instruction* x);
// 0 <= x < y for each element of the integers x and y.
bool IsBelow(const ir::Instruction* x, const ir::Instruction* y);
// A number that no element of the integer x is above, if none is negative.
std::optional<int64_t> LargestValue(const ir::Instruction* x);
// The order of all elements of the integer x to all of y.
struct Order {
  bool is_less = false, is_not_greater = false, is_not_less = false, is_greater = false;
};
Order OrderOf(const ir::Instruction* x, const ir::Instruction* y);
// No element is an infinity or a NaN.
bool IsFinite(const ir::Instruction* x);

// Whether every value of one type is a value of the other.
bool HoldsAll(ElementType small, ElementType large);

}  // namespace kiln::passes::simplify

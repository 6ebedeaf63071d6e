// Frozen arguments: arrays among the entry's parameters that are the same in all runs.
#pragma once

#include <string_view>
#include <vector>

#include "ir/ir.h"

namespace kiln::ir {

// The frontend attribute of a parameter of the entry with frozen arrays: of each of its leaves '1'
// where it is frozen, else '0'.
inline constexpr std::string_view kFrozenAttribute = "kiln.frozen";

// Marks leaves of the entry's parameters, counted over all parameters in order, and no others.
void MarkFrozen(Module& module, const std::vector<size_t>& leaves);

// By leaf of the entry's parameters, whether it is frozen; empty where none is.
std::vector<bool> FrozenLeaves(const Module& module);

// Whether an array is the memory of a frozen one.
bool IsFrozen(const Instruction& value);

// Whether an array is the same in all runs, and there before them: frozen, or a constant.
inline bool IsFixed(const Instruction& value) { return value.IsConstant() || IsFrozen(value); }

}  // namespace kiln::ir

// Copies between layouts, around calls.
#pragma once

#include <span>

#include "ir/ir.h"

namespace kiln::passes {

// The value with the layouts of `shape`, made before `at`: itself, or copies of its arrays.
ir::Instruction* WithLayouts(ir::Instruction* value, const Shape& shape, ir::Instruction* at);

// Gives a call the layouts of these shapes of its operands and its result, with copies from and to
// the layouts around it. The call is replaced.
void SetCallLayouts(ir::Instruction* call, std::span<const Shape> operands, const Shape& result);

}  // namespace kiln::passes

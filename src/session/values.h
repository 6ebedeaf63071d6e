// Values of a graph: the arrays that may stand for them, and copies of them.
#pragma once

#include <string>

#include "ir/ir.h"
#include "tensor/shape.h"

namespace kiln::session {

// Whether an array may be the value of a declared shape. Symbols fit any size: whether all their
// sizes agree is known at a run.
bool Fits(const Shape& actual, const Shape& declared);

// A copy of a value, with its requests: before an instruction, or at the end of the computation.
ir::Instruction* CopyOf(ir::Instruction* value, ir::Instruction* before, std::string name = {});

}  // namespace kiln::session

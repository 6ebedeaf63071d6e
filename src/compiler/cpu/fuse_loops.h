// Loops of small bodies as one piece of code each.
#pragma once

#include "codegen/lowered_program.h"

namespace kiln::compiler {

// Marks the loops of a CPU's program that become one function, and in them the launches whose code
// is so small that a call would cost more than it.
void FuseLoops(codegen::LoweredProgram& lowered);

}  // namespace kiln::compiler

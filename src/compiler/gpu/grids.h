// The description of a program's kernels for a GPU's device.
#pragma once

#include "codegen/lowered_program.h"

namespace kiln::compiler {

// Sets the grids of the kernels that are launched, whose symbols end in the program's id, and the
// library's gemm where a kernel is one.
void DescribeGrids(codegen::LoweredProgram& lowered);

}  // namespace kiln::compiler

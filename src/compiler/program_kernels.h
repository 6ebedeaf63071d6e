// What a device is told of a program's kernels.
#pragma once

#include "codegen/lowered_program.h"
#include "target/target.h"

namespace kiln::compiler {

// Sets the program's kernels. Those that are launched on a GPU have grids, whose symbols end in the
// program's id, and a library's product where they are one.
void DescribeKernels(codegen::LoweredProgram& lowered, target::Kind target);

}  // namespace kiln::compiler

// How long a run of a program takes, roughly.
#pragma once

#include "codegen/lowered_program.h"

namespace kiln::compiler {

// On one thread of a CPU, in nanoseconds, to tell small programs from others: a guess from the
// bytes and operations of its kernels. Infinite where it is not known, as of loops that stop by
// themselves and of functions outside generated code.
double NanosecondsOf(const codegen::LoweredProgram& lowered);

}  // namespace kiln::compiler

// Whether a program makes all that it reads and gives back.
#pragma once

#include "base/status.h"
#include "codegen/lowered_program.h"

namespace kiln::compiler {

// Fails with INTERNAL, naming the kernel or the result, where memory is read, or given back as a
// result, before anything has written it. It says what the frame holds otherwise: arguments and
// constants are there from the start, temporaries and results are what was left in their memory.
// A kernel counts as writing an output where its stores, at all points together, are as many as
// the output has elements. Of a loop the condition runs, and the body may not.
Status CheckWritten(const codegen::LoweredProgram& lowered);

}  // namespace kiln::compiler

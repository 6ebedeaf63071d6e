// Whether a program makes all that it reads and gives back.
#pragma once

#include "base/status.h"
#include "codegen/lowered_program.h"

namespace kiln::compiler {

// Fails with INTERNAL, naming the kernel or the result, where memory is read, or given back as a
// result, before anything has written it. Arguments and constants are initialised from the start,
// temporaries and results are not. A kernel counts as writing an output where its stores, at all
// points together, are as many as the output has elements. A loop's condition always runs, its body
// may not.
Status CheckWritten(const codegen::LoweredProgram& lowered);

}  // namespace kiln::compiler

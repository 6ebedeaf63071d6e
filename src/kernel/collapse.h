// Merges iteration variables that every access walks as one.
#pragma once

#include "kernel/kernel.h"

namespace kiln::kernel {

// Neighbouring variables of the same kind (outer, or inner of the same stages and both or neither
// reduced) become one where all indices stay as simple as they are: fewer loops, longer vectors.
// Drops variables of extent 1, and puts the outer ones in the order of the first output's memory.
void CollapseVariables(Kernel& kernel);

}  // namespace kiln::kernel

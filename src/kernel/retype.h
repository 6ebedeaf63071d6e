// Values of half types that a kernel only moves.
#pragma once

#include "kernel/kernel.h"

namespace kiln::kernel {

// f16 and bf16 values that are only moved and selected become u16: they are not converted on the
// way, keep every bit of a NaN, and share code with other types.
void RetypeMoves(Kernel& kernel);

}  // namespace kiln::kernel

// Values of half types that a kernel only moves.
#pragma once

#include "kernel/kernel.h"

namespace kiln::kernel {

// What of f16 and bf16 is read, chosen among and stored, and never computed with, becomes u16: so
// it is not converted on the way, keeps every bit of a NaN, and shares its code with other types.
void RetypeMoves(Kernel& kernel);

}  // namespace kiln::kernel

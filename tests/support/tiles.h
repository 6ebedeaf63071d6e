// The tiles of AMX, and products of bytes by AVX_VNNI and AVX_VNNI_INT8, for machines without them.
#pragma once

#include "llvm/IR/Module.h"

namespace kiln::testing {

// Calls functions of this process in the place of the module's instructions of AMX, and of those on
// vectors of 32 bytes that the machine lacks. Tiles are one set for each thread; sizes that do not
// fit abort.
void EmulateUnits(llvm::Module& module);

}  // namespace kiln::testing

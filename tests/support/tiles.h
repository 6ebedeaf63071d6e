// The tiles of AMX for machines without them.
#pragma once

#include "llvm/IR/Module.h"

namespace kiln::testing {

// Calls functions of this process in the place of the module's instructions of AMX. They have one
// set of tiles for each thread, and abort where the sizes of tiles do not fit.
void EmulateTiles(llvm::Module& module);

}  // namespace kiln::testing

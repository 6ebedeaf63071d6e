// The code generator for AArch64, which libkiln does not have.
#pragma once

namespace kiln::aot {

// Before any code is generated in the process. Without the generator in the build, programs for
// AArch64 are UNIMPLEMENTED.
void RegisterAArch64();

}  // namespace kiln::aot

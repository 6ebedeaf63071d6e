// NaNs as GPUs make them.
#pragma once

#include "llvm/IR/Function.h"

namespace kiln::codegen {

// Arithmetic, conversions, negations and absolute values of f32 and f64 give the same NaN for any:
// PTX leaves its sign and payload open, and NVIDIA's GPUs have one for f32. Code that relies on
// more is wrong on the emulated GPU, too.
void MakeNansEqual(llvm::Function& function);

}  // namespace kiln::codegen

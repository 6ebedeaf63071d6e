// Kernels that are a matrix product and what follows it.
#pragma once

#include "base/status.h"
#include "kernel/scheduled_kernel.h"
#include "llvm/IR/Function.h"
#include "target/target.h"

namespace kiln::codegen {

// Fills the empty body of `function` with a kernel of form kGemm, or with one that packs an operand
// of it.
Status EmitProduct(llvm::Function* function, const kernel::ScheduledKernel& kernel,
                   const target::Cpu& cpu);

}  // namespace kiln::codegen

// Kernels that are a matrix product and what follows it.
#pragma once

#include "base/status.h"
#include "kernel/scheduled_kernel.h"
#include "llvm/IR/Function.h"
#include "target/target.h"

namespace kiln::codegen {

// Fills the empty body of `function` with a product, or with what packs an operand of it.
Status EmitProduct(llvm::Function* function, const kernel::Kernel& kernel,
                   const kernel::CpuGemm& schedule, const target::Cpu& cpu);

}  // namespace kiln::codegen

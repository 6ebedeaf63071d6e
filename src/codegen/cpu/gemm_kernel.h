// Kernels of a gemm with its epilogue.
#pragma once

#include "base/status.h"
#include "kernel/scheduled_kernel.h"
#include "llvm/IR/Function.h"
#include "target/target.h"

namespace kiln::codegen {

// Fills the empty body of `function` with a gemm, or with the packing of an operand.
Status EmitGemmKernel(llvm::Function* function, const kernel::Kernel& kernel,
                      const kernel::CpuGemm& gemm, const target::Cpu& cpu);

}  // namespace kiln::codegen

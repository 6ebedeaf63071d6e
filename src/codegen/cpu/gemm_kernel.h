// Kernels of a gemm with its epilogue.
#pragma once

#include <string>

#include "base/status.h"
#include "kernel/scheduled_kernel.h"
#include "llvm/IR/Function.h"
#include "target/target.h"

namespace kiln::codegen {

// Fills the empty body of `function` with a gemm, or with the packing of an operand. In `large`
// programs, which take long to compile, all gemms share their code that can.
Status EmitGemmKernel(llvm::Function* function, const kernel::Kernel& kernel,
                      const kernel::CpuGemm& gemm, const target::Cpu& cpu, bool large);

// Names the code that a kernel of the role kGemm has in common with others of its module, about.
std::string SharedGemmName(const kernel::Kernel& kernel, const kernel::CpuGemm& gemm,
                           const target::Cpu& cpu);

}  // namespace kiln::codegen

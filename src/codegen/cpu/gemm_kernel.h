// Kernels of a gemm with its epilogue.
#pragma once

#include "base/status.h"
#include "kernel/scheduled_kernel.h"
#include "llvm/IR/Function.h"
#include "target/target.h"

namespace kiln::codegen {

// Fills the empty body of `function` with a gemm, or with the packing of an operand. With
// `own_gemm` the gemm may have code that it shares with no other kernel; with `of_any_size` others
// of other sizes have that code, too.
Status EmitGemmKernel(llvm::Function* function, const kernel::Kernel& kernel,
                      const kernel::CpuGemm& gemm, const target::Cpu& cpu, bool own_gemm,
                      bool of_any_size);

// Whether a kernel takes less time with code of its own: its epilogue is short, and follows short
// sums.
bool GainsByOwnGemm(const kernel::Kernel& kernel, const kernel::CpuGemm& gemm);

}  // namespace kiln::codegen

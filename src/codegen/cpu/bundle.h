// Horizontally fused kernels: a kernel with the items of several others.
#pragma once

#include "codegen/llvm_session.h"
#include "codegen/lowered_program.h"
#include "llvm/IR/Function.h"

namespace kiln::codegen {

// Fills the empty body of `function`, which has the signature of kiln_kernel_fn.
void EmitBundle(LlvmSession& session, llvm::Function* function, const LoweredProgram& lowered,
                const kernel::CpuBundle& bundle);

}  // namespace kiln::codegen

// A gemm and a kernel over its rows, block by block.
#pragma once

#include "codegen/llvm_session.h"
#include "codegen/lowered_program.h"
#include "llvm/IR/Function.h"

namespace kiln::codegen {

// Fills the empty body of `function`, which has the signature of kiln_kernel_fn.
void EmitChain(LlvmSession& session, llvm::Function* function, const LoweredProgram& lowered,
               const kernel::CpuChain& chain);

}  // namespace kiln::codegen

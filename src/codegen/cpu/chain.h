// A product and what follows it over the rows that it makes, block by block.
#pragma once

#include "codegen/llvm_session.h"
#include "llvm/IR/Function.h"
#include "plan/plan.h"

namespace kiln::codegen {

// Fills the empty body of `function`, which has the signature of kiln_kernel_fn.
void EmitChain(LlvmSession& session, llvm::Function* function, const plan::Program& program,
               const plan::ScheduledKernel& chain);

}  // namespace kiln::codegen

// Kernels of kind kSort as LLVM IR for the CPU, by a schedule of kernel/schedule/cpu/sort.h.
#pragma once

#include "base/status.h"
#include "codegen/llvm_session.h"
#include "kernel/kernel.h"
#include "kernel/schedule/cpu/sort.h"
#include "llvm/IR/Function.h"
#include "target/target.h"

namespace kiln::codegen {

// Fills the empty body of `function`, as EmitNest does, and adds functions of its own to the
// module.
Status EmitSort(LlvmSession& session, llvm::Function* function, const kernel::Kernel& kernel,
                const kernel::CpuSortSchedule& schedule, const target::Cpu& cpu);

}  // namespace kiln::codegen

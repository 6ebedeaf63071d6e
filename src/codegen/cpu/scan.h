// Kernels of kind kScan as LLVM IR for the CPU, by a schedule of kernel/schedule/cpu/scan.h.
#pragma once

#include "base/status.h"
#include "kernel/kernel.h"
#include "kernel/schedule/cpu/nest.h"
#include "llvm/IR/Function.h"
#include "target/target.h"

namespace kiln::codegen {

// Fills the empty body of `function`, as EmitNest does.
Status EmitScan(llvm::Function* function, const kernel::Kernel& kernel,
                const kernel::CpuNestSchedule& schedule, const target::Cpu& cpu);

}  // namespace kiln::codegen

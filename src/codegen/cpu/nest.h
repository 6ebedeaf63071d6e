// Kernels of kind kNest as LLVM IR for the CPU, by a schedule of kernel/schedule/cpu/nest.h.
#pragma once

#include <vector>

#include "base/status.h"
#include "codegen/elemental.h"
#include "kernel/kernel.h"
#include "kernel/schedule/cpu/nest.h"
#include "llvm/IR/Function.h"
#include "target/target.h"

namespace kiln::codegen {

// Fills the empty body of `function`, which has the signature of kiln_kernel_fn and the attributes
// of the target.
Status EmitNest(llvm::Function* function, const kernel::Kernel& kernel,
                const kernel::CpuNestSchedule& schedule, const target::Cpu& cpu);

// Emits all items at b's insertion point and leaves it behind them. `args` are the addresses of the
// kernel's parameters. Not for reductions that are cut into chunks.
Status EmitNestInline(Builder& b, std::vector<llvm::Value*> args, const kernel::Kernel& kernel,
                      const kernel::CpuNestSchedule& schedule, const target::Cpu& cpu);

}  // namespace kiln::codegen

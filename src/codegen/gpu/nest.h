// Kernels of kind kNest as LLVM IR for a GPU, by a schedule of kernel/schedule/gpu/nest.h. The
// machine is asked for threads, barriers and shuffles by GpuPrimitives alone.
#pragma once

#include "base/status.h"
#include "codegen/math/math.h"
#include "kernel/kernel.h"
#include "kernel/schedule/gpu/nest.h"
#include "llvm/IR/Function.h"

namespace kiln::codegen {

// void(ptr addrspace(1) ...): one pointer for each of the kernel's parameters.
llvm::FunctionType* GpuKernelType(llvm::LLVMContext& context, const kernel::Kernel& kernel);

// Fills the empty body of a function of that type: the work of one thread.
Status EmitGpuNest(llvm::Function* function, const kernel::Kernel& kernel,
                   const kernel::GpuNestSchedule& schedule, MathOptions math);

}  // namespace kiln::codegen

// Kernels as LLVM IR for a GPU, by a schedule of kernel/schedule/gpu. The
// machine is asked for threads, barriers and shuffles by GpuPrimitives alone.
#pragma once

#include <unordered_map>

#include "base/status.h"
#include "codegen/math/math.h"
#include "kernel/kernel.h"
#include "kernel/schedule/gpu/schedule.h"
#include "llvm/IR/Function.h"

namespace kiln::codegen {

// void(ptr addrspace(1) ...): one pointer for each of the kernel's parameters, and one for its
// scratch if it has any.
llvm::FunctionType* GpuKernelType(llvm::LLVMContext& context, const kernel::Kernel& kernel,
                                  const kernel::GpuSchedule& schedule);

// The functions of a module that large combiners are, which the launches of a kernel share.
using CombinerFunctions = std::unordered_map<const kernel::Combiner*, llvm::Function*>;

// Fills the empty body of a function of that type: the work of one thread in one of the schedule's
// launches.
Status EmitGpuKernel(llvm::Function* function, const kernel::Kernel& kernel,
                     const kernel::GpuSchedule& schedule, size_t launch, MathOptions math,
                     CombinerFunctions& combiners);

}  // namespace kiln::codegen

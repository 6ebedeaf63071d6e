// The effort of LLVM for each kernel of a program.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/lowered_program.h"

namespace kiln::codegen {

struct Effort {
  // The program takes long to compile: elementary functions are shared by all kernels of a module.
  bool large = false;
  // One kernel takes very long to compile: they are shared on GPUs, too, where calls are slow.
  bool huge = false;
  // Of each kernel: compiled without LLVM's optimisations, in a third of the time; its code is
  // about a third slower, and takes twice to three times as long where values stay in registers
  // otherwise. So are, in large programs, kernels that do little elementwise work, also on a gemm,
  // outside of loops; the gemm itself is optimised. In others, so are nests of a CPU, and gemms
  // without epilogues, that take next to no part of the program's time.
  IdVector<program::KernelId, bool> quick;
  // Of each kernel of a CPU: its time is so small a part of the program's that its schedule is made
  // shorter.
  IdVector<program::KernelId, bool> shortened;
  // Of each kernel of a CPU: a gemm that gains by code of its own, and would share its code with no
  // other kernel, so that LLVM has little more to do.
  IdVector<program::KernelId, bool> own_gemm;
  // Of each kernel of a CPU: a gemm that shares its code with others of other sizes, or has no
  // epilogue and shares it.
  IdVector<program::KernelId, bool> of_any_size;
  // Of each kernel, about how long LLVM takes, in no unit.
  IdVector<program::KernelId, int64_t> costs;
};

// Beyond so many kernels a module's memory no longer fits into the caches, and each takes longer.
inline constexpr size_t kMostKernelsOfModule = 1200;

// A gemm without epilogue, which mostly has its code for itself.
bool IsLoneGemm(const kernel::ScheduledKernel& k);

// For an emulated GPU all of its kernels' nests may be quick: no more than a number at a time is
// computed there, and an access of memory takes longer to check than it does. The parts of a
// bundle, which has a copy of each, count as kernels.
Effort PlanEffort(const LoweredProgram& lowered, Optimization optimization, bool emulates_gpu);

}  // namespace kiln::codegen

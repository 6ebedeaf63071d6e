// The SIMT transformation: kernels for a GPU as functions that run one thread each.
#pragma once

#include <span>

#include "base/status.h"
#include "llvm/IR/Function.h"

namespace kiln::codegen {

// Rewrites a module of GPU code, for the machine whose triple and data layout it has. A kernel, a
// `void(ptr addrspace(1)...)`, becomes a `void(ptr)` of its name (kiln_emulated_kernel_fn of
// frame/emulated.h), whose argument is the thread that runs, with a kiln_emulated_kernel beside it.
// kiln.gpu.* become loads from the thread and calls of the emulator's closed table; accesses of
// memory are checked, and NaNs are those of a GPU (emulate_nans.h). Functions that kernels call are
// inlined where they take pointers or use primitives, but for the parts of bundles, which get the
// thread, too. INTERNAL where something cannot be checked or is not known. The kernels as they were
// are gone then. Stack slots that can be registers have become such. `small`: the code had better
// be small than fast. INTERNAL, too, for primitives that the emulated architecture has not.
Status LowerPrimitivesToEmulator(llvm::Module& module, std::span<llvm::Function* const> kernels,
                                 int sm, bool small = false);

}  // namespace kiln::codegen

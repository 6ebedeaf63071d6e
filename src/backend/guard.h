// LLVM as a guest in somebody else's process: what would end the process ends a run of LLVM.
#pragma once

#include <functional>
#include <string_view>

#include "base/interrupt.h"
#include "base/status.h"

namespace llvm {
class LLVMContext;
}  // namespace llvm

namespace kiln::backend {

// Runs work(), which uses LLVM, and gives its status. Where LLVM reports a fatal error the run ends
// there, as INTERNAL, where it has no memory as RESOURCE_EXHAUSTED, where the interrupt says so as
// that. What it holds then stays for good and is never touched again: work() has LLVM's objects in
// its own variables, and hands results over when it has them whole. `name` is put in front of
// messages. Some memory is kept in reserve meanwhile, so that a run without any mostly ends where
// it holds no lock.
Status RunLlvm(std::string_view name, const Interrupt& interrupt,
               const std::function<Status()>& work);

// Lets the passes over a context's modules be such places to end at: between two functions.
void EndBetweenPasses(llvm::LLVMContext& context);

}  // namespace kiln::backend

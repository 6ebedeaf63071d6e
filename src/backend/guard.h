// Containment of LLVM: an error that would end the process ends a run of LLVM.
#pragma once

#include <functional>
#include <string_view>

#include "base/interrupt.h"
#include "base/status.h"

namespace llvm {
class LLVMContext;
}  // namespace llvm

namespace kiln::backend {

// Runs work(), which uses LLVM, and returns its status. A fatal error of LLVM ends the run with
// INTERNAL, a lack of memory with RESOURCE_EXHAUSTED, an interrupt with its status. The state of an
// abandoned run is leaked and never touched again: work() has LLVM's objects in its own variables,
// and hands over complete results only. `name` is put in front of messages. A reserve of memory is
// held meanwhile, so that a run out of memory mostly ends where it holds no lock.
Status RunLlvm(std::string_view name, const Interrupt& interrupt,
               const std::function<Status()>& work);

// Makes pass boundaries of a context's modules such places to end at: between two functions.
void EndBetweenPasses(llvm::LLVMContext& context);

}  // namespace kiln::backend

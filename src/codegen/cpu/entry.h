// The program itself as native code: its steps, in order, with loops and branches of the program as
// loops and branches of the machine.
#pragma once

#include <string>

#include "base/status.h"
#include "codegen/llvm_session.h"
#include "plan/plan.h"

namespace kiln::codegen {

// The symbol of kernel `index` of a program.
std::string KernelSymbol(const plan::Program& program, int index);

// Adds kiln_entry and, where the program has a prologue, kiln_prologue to the session's module.
// Kernels that are not defined in it are declared.
Status EmitEntries(LlvmSession& session, const plan::Program& program, const target::Cpu& cpu);

}  // namespace kiln::codegen

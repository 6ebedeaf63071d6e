// The program itself as native code: its steps, in order, with loops and branches of the program as
// loops and branches of the machine.
#pragma once

#include <string>

#include "base/status.h"
#include "codegen/llvm_session.h"
#include "codegen/lowered_program.h"
#include "target/target.h"

namespace kiln::codegen {

// The symbol of kernel `index` of a program.
std::string KernelSymbol(const LoweredProgram& lowered, program::KernelId kernel);

// Adds the entry and, where the program has one, the prologue to the session's module.
// Kernels that are not defined in it are declared.
Status EmitEntries(LlvmSession& session, const LoweredProgram& lowered, const target::Cpu& cpu);

}  // namespace kiln::codegen

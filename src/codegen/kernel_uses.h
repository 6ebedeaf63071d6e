// How a program's steps use its kernels.
#pragma once

#include <vector>

#include "codegen/lowered_program.h"

namespace kiln::codegen {

struct KernelUse {
  bool launched = false;  // by a step, or by one of the prologue
  bool called = false;    // as a function
  bool inlined = false;   // as a piece of a fused loop
  bool looped = false;    // either of them, in a loop
};

// Over the program's steps and those of bindings, without its prologue. The parts of a bundle or
// chain are called where that is launched.
IdVector<program::KernelId, KernelUse> KernelUses(const LoweredProgram& lowered);

}  // namespace kiln::codegen

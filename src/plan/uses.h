// How a program's steps use its kernels and its memory.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace kiln::plan {

struct KernelUse {
  bool launched = false;  // by a step, or by one of the prologue
  bool called = false;    // as a function
  bool inlined = false;   // as a piece of a fused loop
  bool looped = false;    // either of them, in a loop
};

// By kernel, over the program's steps without its prologue. The parts of a bundle or chain are
// called where that is launched.
std::vector<KernelUse> KernelUses(const Program& program);

// By allocation, whether the program's steps use it: those of its prologue do not count.
std::vector<bool> AllocationUses(const Program& program);

}  // namespace kiln::plan

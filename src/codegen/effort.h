// How much of LLVM's work each kernel of a program is worth.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/codegen.h"
#include "plan/plan.h"

namespace kiln::codegen {

struct Effort {
  // The program takes long to compile: elementary functions are shared by all kernels of a module.
  bool large = false;
  // One kernel takes very long to compile: they are shared on GPUs, too, where calls are slow.
  bool huge = false;
  // Of each kernel: compiled without LLVM's optimisations, in a third of the time; its code is
  // about a third slower. So are, in large programs, kernels that do little elementwise work, also
  // on a matrix product, outside of loops. The product itself is optimised in any case.
  std::vector<bool> quick;
  // Of each kernel, about how long LLVM takes, in no unit.
  std::vector<int64_t> costs;
};

Effort PlanEffort(const plan::Program& program, Optimization optimization);

}  // namespace kiln::codegen

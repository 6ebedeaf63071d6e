// How programs want their arguments aligned.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "target/target.h"

namespace kiln::plan {

// What the kernels of a CPU may rely on of arrays that they only read: a multiple of the elements'
// size, as far as vectors may lie anywhere. What they write lies at multiples of kAlignment.
int64_t InputAlignment(ElementType type, const target::Cpu& cpu);

// For each parameter of a program for a CPU what its address must be a multiple of.
std::vector<int64_t> ParameterAlignments(const Program& program, const target::Cpu& cpu);

}  // namespace kiln::plan

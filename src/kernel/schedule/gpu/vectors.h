// Accesses of several elements at once.
#pragma once

#include "kernel/index.h"
#include "kernel/kernel.h"

namespace kiln::kernel {

// The most bytes that a thread reads or writes at once.
inline constexpr int64_t kGpuAccessBytes = 16;

// Whether the index goes through memory in order along a variable, and is a multiple of `lanes`
// where the variable is: so many elements are one access then, or several aligned ones.
bool IsGpuVector(const Index& index, VariableId variable, int64_t lanes);

// The best number of consecutive points of a variable per thread in a stage, a power of two: as
// many as the widest array that is read or written along it has elements in one access, if that
// divides the extent. 1 where nothing is gained.
int GpuLanes(const Kernel& kernel, const Stage& stage, VariableId variable);

}  // namespace kiln::kernel

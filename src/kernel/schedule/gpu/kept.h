// Values kept in registers by threads of a team from one stage of a kernel to the next.
//
//   stage 0: load x            stage 0: load x
//   stage 1: load x, store e   stage 1: x, e
//   stage 2: load e, store y   stage 2: e, store y
//
// Where all stages give a thread the same points, what it has read or stored in one stage it need
// not read in another, and what a later stage stores in the same place need not be stored before.
#pragma once

#include "kernel/kernel.h"
#include "kernel/schedule/gpu/schedule.h"

namespace kiln::kernel {

// For stages that are walked by teams of so many threads, each of `lanes` points at once. Nothing
// is kept where registers do not hold it.
GpuKept KeepRows(const Kernel& kernel, int lanes, int team);

// The lanes that all stages which walk inner points can take, if they all walk the same number of
// them along the same extents; 0 otherwise.
int LanesOfAllStages(const Kernel& kernel, const IdVector<StageId, int>& lanes);

}  // namespace kiln::kernel

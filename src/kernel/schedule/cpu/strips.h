// Strips (kernel/schedule/cpu/nest.h, CpuStrips): where they pay, and how wide they are.
#pragma once

#include "kernel/kernel.h"
#include "kernel/schedule/cpu/nest.h"
#include "target/target.h"

namespace kiln::kernel {

// Whether strips of a variable transpose: stages walk inner variables, and of what they read and
// write some lies in order along that outer variable and some along the last inner one. If wanted,
// of short rows all may lie along the inner one.
bool StripsTranspose(const Kernel& kernel, const target::Cpu& cpu, VariableId vector,
                     int vector_width, bool short_rows);
// Of such a kernel: whether squares that are transposed in registers make an access.
bool IsSquareInStrips(const Stage& stage, const Index& index, VariableId vector);

// Completes a schedule whose vectors and unrolling are chosen, if strips pay: strips, items and
// prefetches. Whether it has.
bool ScheduleStrips(const Kernel& kernel, const target::Cpu& cpu, bool short_rows,
                    CpuNestSchedule& schedule);

}  // namespace kiln::kernel

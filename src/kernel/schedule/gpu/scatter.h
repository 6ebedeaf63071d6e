// Scatters on a GPU: updates that may collide are applied in order.
#pragma once

#include <vector>

#include "kernel/kernel.h"
#include "kernel/schedule/gpu/schedule.h"
#include "target/target.h"

namespace kiln::kernel {

// The variables of a kernel of kind kScatter.
struct GpuUpdateOrder {
  std::vector<VariableId> in_order;  // whose points follow one another
  std::vector<VariableId> others;    // the other inner ones
  // The outer ones, and the others where updates at two of their points never meet, by whether they
  // decide which updates are done, and where, beside moving them all along: those of `slices` move
  // each update in the same way.
  std::vector<VariableId> batch, slices;
  bool others_are_apart = false;
};
GpuUpdateOrder OrderOfUpdates(const Kernel& kernel);

GpuSchedule ScheduleGpuScatter(const Kernel& kernel, const target::Gpu& gpu);

}  // namespace kiln::kernel

#include "kernel/schedule/cpu/shorten.h"

namespace kiln::kernel {

CpuNestSchedule Shortened(const Kernel& kernel, const CpuNestSchedule& schedule,
                          const target::Cpu& cpu) {
  CpuNestSchedule s = schedule;
  if (s.strips.width > 0) return s;
  s.pipelined = false;
  s.prefetches.clear();
  s.cases = {};
  // Panels are items of squares.
  if (!s.panels) s.tile_variable = {};
  s.interleaved = {};
  for (StageId id : s.stages.ids()) {
    CpuStageSchedule& stage = s.stages[id];
    const bool adds_up =
        !kernel.stages[id].reductions.empty() && kernel.IsInner(stage.vector_variable);
    if (adds_up || stage.halving || !stage.vector_variable.valid()) continue;
    stage.unroll = 1;
    stage.masked = cpu.has_masks && !s.tile_variable.valid();
  }
  return s;
}

}  // namespace kiln::kernel

#include "compiler/gpu/grids.h"

#include "base/strings.h"
#include "codegen/kernel_uses.h"
#include "compiler/gpu/library_gemm.h"

namespace kiln::compiler {

void DescribeGrids(codegen::LoweredProgram& lowered) {
  const auto uses = codegen::KernelUses(lowered);
  for (program::KernelId k : lowered.kernels.ids()) {
    const kernel::ScheduledKernel& scheduled = lowered.kernels[k];
    program::Kernel& kernel = lowered.program.kernels[k];
    kernel.grids.clear();
    kernel.library.reset();
    if (!uses[k].launched) continue;
    const kernel::GpuSchedule* schedule = kernel::GridsOf(scheduled.schedule);
    if (!schedule) continue;
    for (size_t i = 0; i < schedule->launches.size(); ++i) {
      const kernel::GpuLaunch& launch = schedule->launches[i];
      kernel.grids.push_back(
          {Cat("k", k, i > 0 ? Cat("_", i) : "", "_", kernel.name, "_", lowered.program.id),
           launch.blocks, launch.threads, launch.shared_bytes});
    }
    kernel.library = AsLibraryGemm(scheduled);
  }
}

}  // namespace kiln::compiler

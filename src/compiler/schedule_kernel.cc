#include "compiler/schedule_kernel.h"

namespace kiln::compiler {

Result<plan::ScheduledKernel> ScheduleKernel(kernel::Kernel kernel, const target::Target& target) {
  plan::ScheduledKernel scheduled;
  scheduled.kernel = std::move(kernel);
  switch (target.kind) {
    case target::Kind::kCpu:
      scheduled.cpu = kernel::ScheduleNest(scheduled.kernel, target.cpu);
      scheduled.items = scheduled.cpu.items;
      scheduled.max_tasks = scheduled.cpu.max_tasks;
      scheduled.finish = scheduled.cpu.split > 0;
      return scheduled;
    case target::Kind::kGpu:
      return Unimplemented("programs for the target ", target.ToString());
    case target::Kind::kReference:
      break;
  }
  return Internal("the reference device runs no kernels");
}

int64_t ScratchBytes(const plan::ScheduledKernel& kernel, const target::Target& target) {
  return target.kind == target::Kind::kCpu ? kernel.cpu.scratch_bytes : kernel.gpu.scratch_bytes;
}

}  // namespace kiln::compiler

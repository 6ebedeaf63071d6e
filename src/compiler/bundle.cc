#include "compiler/bundle.h"

namespace kiln::compiler {
using kernel::ScheduledKernel;

Result<ScheduledKernel> BundleOf(const std::string& name, const kernel::Scheduler& scheduler,
                                 const codegen::ScheduledKernels& kernels,
                                 const std::vector<PartLaunch>& parts) {
  ScheduledKernel bundle;
  kernel::Kernel& all = bundle.kernel;
  all.name = name;
  std::vector<kernel::KernelPart> places;
  std::vector<const ScheduledKernel*> scheduled;
  for (const PartLaunch& part : parts) {
    const ScheduledKernel& k = kernels[part.kernel];
    if (!scheduler.PartMicroseconds(k)) {
      return Internal("bundle '", name, "': '", k.kernel.name, "' cannot run side by side");
    }
    scheduled.push_back(&k);
    places.push_back({part.kernel, static_cast<int>(all.params.size())});
    all.params.insert(all.params.end(), k.kernel.params.begin(), k.kernel.params.end());
    all.op_names.insert(all.op_names.end(), part.op_names.begin(), part.op_names.end());
    all.flops += k.kernel.flops;
    all.transcendentals += k.kernel.transcendentals;
    all.bytes_read += k.kernel.bytes_read;
    all.bytes_written += k.kernel.bytes_written;
  }
  bundle.schedule = scheduler.ScheduleBundle(places, scheduled);
  return bundle;
}

}  // namespace kiln::compiler

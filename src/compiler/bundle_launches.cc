#include "compiler/bundle_launches.h"

namespace kiln::compiler {
using kernel::ScheduledKernel;

std::optional<ScheduledKernel> BundleLaunches(const std::string& name,
                                              const kernel::Scheduler& scheduler,
                                              const std::vector<ScheduledKernel>& kernels,
                                              std::vector<program::Launch>& launches,
                                              std::vector<std::vector<std::string>>& op_names) {
  auto kernel_of = [&](const program::Launch& launch) -> const ScheduledKernel& {
    return kernels[static_cast<size_t>(launch.kernel)];
  };
  std::vector<const ScheduledKernel*> parts;
  for (const program::Launch& launch : launches) {
    if (scheduler.MayBePart(kernel_of(launch))) parts.push_back(&kernel_of(launch));
  }
  double microseconds = 0;
  for (const ScheduledKernel* part : parts) microseconds += part->cpu.microseconds;
  if (parts.size() < 2 || !scheduler.BundlePays(microseconds)) return std::nullopt;

  ScheduledKernel bundle;
  bundle.form = ScheduledKernel::Form::kBundle;
  bundle.kernel.name = name;
  program::Launch together;
  std::vector<std::string> names;
  std::vector<program::Launch> rest;
  std::vector<std::vector<std::string>> rest_names;
  for (size_t i = 0; i < launches.size(); ++i) {
    program::Launch& launch = launches[i];
    const ScheduledKernel& k = kernel_of(launch);
    if (!scheduler.MayBePart(k)) {
      rest.push_back(std::move(launch));
      rest_names.push_back(std::move(op_names[i]));
      continue;
    }
    bundle.parts.push_back(
        {.kernel = launch.kernel, .first_arg = static_cast<int>(together.args.size())});
    bundle.kernel.params.insert(bundle.kernel.params.end(), k.kernel.params.begin(),
                                k.kernel.params.end());
    bundle.kernel.flops += k.kernel.flops;
    bundle.kernel.transcendentals += k.kernel.transcendentals;
    bundle.kernel.bytes_read += k.kernel.bytes_read;
    bundle.kernel.bytes_written += k.kernel.bytes_written;
    together.args.insert(together.args.end(), launch.args.begin(), launch.args.end());
    names.insert(names.end(), op_names[i].begin(), op_names[i].end());
  }
  scheduler.ScheduleBundle(bundle, parts);
  bundle.kernel.op_names = names;
  rest.insert(rest.begin(), std::move(together));
  rest_names.insert(rest_names.begin(), std::move(names));
  launches = std::move(rest);
  op_names = std::move(rest_names);
  return bundle;
}

}  // namespace kiln::compiler

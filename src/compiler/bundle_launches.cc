#include "compiler/bundle_launches.h"

#include <algorithm>
#include <cmath>

#include "kernel/schedule/gpu/nest.h"

namespace kiln::compiler {
namespace {

using kernel::ScheduledKernel;

// What an item of a bundle stands for: the threads' shares are equal but for so much.
constexpr double kItemMicroseconds = 0.02;

bool MayBePart(const ScheduledKernel& k, const target::Target& target) {
  if (k.form != ScheduledKernel::Form::kNest || k.kernel.kind != kernel::Kernel::Kind::kNest) {
    return false;
  }
  if (target.kind == target::Kind::kGpu) {
    return k.gpu.launches.size() == 1 && k.gpu.scratch_bytes == 0;
  }
  return !k.finish && k.cpu.scratch_bytes == 0 && k.items > 0;
}

// Whether the parts are worth a bundle: on a CPU several threads, on a GPU a launch each.
bool Pays(const std::vector<const ScheduledKernel*>& parts, const target::Target& target) {
  if (parts.size() < 2) return false;
  if (target.kind == target::Kind::kGpu) return true;
  double microseconds = 0;
  for (const ScheduledKernel* part : parts) microseconds += part->cpu.microseconds;
  return target.cpu.TasksWorth(microseconds) >= 2;
}

// Gives the threads their shares.
void DealItems(ScheduledKernel& bundle, const std::vector<const ScheduledKernel*>& parts,
               const target::Cpu& cpu) {
  double microseconds = 0;
  bundle.items = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    const ScheduledKernel& k = *parts[p];
    double per_item = k.cpu.microseconds / static_cast<double>(k.items);
    int64_t weight = std::max<int64_t>(std::llround(per_item / kItemMicroseconds), 1);
    bundle.parts[p].first_item = bundle.items;
    bundle.parts[p].weight = weight;
    bundle.items += k.items * weight;
    microseconds += k.cpu.microseconds;
  }
  bundle.max_tasks = std::min(cpu.TasksWorth(microseconds), bundle.items);
}

// Gives each kernel blocks of its own.
void DealBlocks(ScheduledKernel& bundle, const std::vector<const ScheduledKernel*>& parts,
                const target::Gpu& gpu) {
  std::vector<const kernel::Kernel*> kernels;
  for (const ScheduledKernel* part : parts) kernels.push_back(&part->kernel);
  std::vector<kernel::GpuSchedule> schedules;
  bundle.gpu = kernel::ScheduleSideBySide(kernels, gpu, schedules);
  for (size_t p = 0; p < parts.size(); ++p) bundle.parts[p].gpu = schedules[p];
}

}  // namespace

std::optional<ScheduledKernel> BundleLaunches(const std::string& name, const target::Target& target,
                                              const std::vector<ScheduledKernel>& kernels,
                                              std::vector<program::Launch>& launches,
                                              std::vector<std::vector<std::string>>& op_names) {
  auto kernel_of = [&](const program::Launch& launch) -> const ScheduledKernel& {
    return kernels[static_cast<size_t>(launch.kernel)];
  };
  std::vector<const ScheduledKernel*> parts;
  for (const program::Launch& launch : launches) {
    if (MayBePart(kernel_of(launch), target)) parts.push_back(&kernel_of(launch));
  }
  if (!Pays(parts, target)) return std::nullopt;

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
    if (!MayBePart(k, target)) {
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
  if (target.kind == target::Kind::kGpu) {
    DealBlocks(bundle, parts, target.gpu);
  } else {
    DealItems(bundle, parts, target.cpu);
  }
  bundle.kernel.op_names = names;
  rest.insert(rest.begin(), std::move(together));
  rest_names.insert(rest_names.begin(), std::move(names));
  launches = std::move(rest);
  op_names = std::move(rest_names);
  return bundle;
}

}  // namespace kiln::compiler

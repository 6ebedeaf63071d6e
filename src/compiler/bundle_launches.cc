#include "compiler/bundle_launches.h"

#include <algorithm>
#include <cmath>

namespace kiln::compiler {
namespace {

using plan::ScheduledKernel;

// What an item of a bundle stands for: the threads' shares are equal but for so much.
constexpr double kItemMicroseconds = 0.02;

bool MayBePart(const ScheduledKernel& k) {
  return k.form == ScheduledKernel::Form::kNest && k.kernel.kind == kernel::Kernel::Kind::kNest &&
         !k.finish && k.cpu.scratch_bytes == 0 && k.items > 0;
}

}  // namespace

std::optional<ScheduledKernel> BundleLaunches(const std::string& name, const target::Cpu& cpu,
                                              const std::vector<ScheduledKernel>& kernels,
                                              std::vector<plan::Launch>& launches,
                                              std::vector<std::vector<std::string>>& op_names) {
  auto kernel_of = [&](const plan::Launch& launch) -> const ScheduledKernel& {
    return kernels[static_cast<size_t>(launch.kernel)];
  };
  double microseconds = 0;
  int64_t count = 0;
  for (const plan::Launch& launch : launches) {
    if (!MayBePart(kernel_of(launch))) continue;
    ++count;
    microseconds += kernel_of(launch).cpu.microseconds;
  }
  if (count < 2 || cpu.TasksWorth(microseconds) < 2) return std::nullopt;

  ScheduledKernel bundle;
  bundle.form = ScheduledKernel::Form::kBundle;
  bundle.kernel.name = name;
  bundle.items = 0;
  plan::Launch together;
  std::vector<std::string> names;
  std::vector<plan::Launch> rest;
  std::vector<std::vector<std::string>> rest_names;
  for (size_t i = 0; i < launches.size(); ++i) {
    plan::Launch& launch = launches[i];
    const ScheduledKernel& k = kernel_of(launch);
    if (!MayBePart(k)) {
      rest.push_back(std::move(launch));
      rest_names.push_back(std::move(op_names[i]));
      continue;
    }
    double per_item = k.cpu.microseconds / static_cast<double>(k.items);
    int64_t weight = std::max<int64_t>(std::llround(per_item / kItemMicroseconds), 1);
    bundle.parts.push_back(
        {launch.kernel, static_cast<int>(together.args.size()), bundle.items, weight});
    bundle.items += k.items * weight;
    bundle.kernel.params.insert(bundle.kernel.params.end(), k.kernel.params.begin(),
                                k.kernel.params.end());
    bundle.kernel.flops += k.kernel.flops;
    bundle.kernel.transcendentals += k.kernel.transcendentals;
    bundle.kernel.bytes_read += k.kernel.bytes_read;
    bundle.kernel.bytes_written += k.kernel.bytes_written;
    together.args.insert(together.args.end(), launch.args.begin(), launch.args.end());
    names.insert(names.end(), op_names[i].begin(), op_names[i].end());
  }
  bundle.max_tasks = std::min(cpu.TasksWorth(microseconds), bundle.items);
  bundle.kernel.op_names = names;
  rest.insert(rest.begin(), std::move(together));
  rest_names.insert(rest_names.begin(), std::move(names));
  launches = std::move(rest);
  op_names = std::move(rest_names);
  return bundle;
}

}  // namespace kiln::compiler

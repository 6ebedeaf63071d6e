#include "device/gpu/resources.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/strings.h"

namespace kiln::device {
namespace {

using Row = std::vector<std::string>;

void CollectKernels(const plan::Steps& steps, std::set<int>& kernels) {
  for (const plan::Step& step : steps) {
    if (const auto* launch = std::get_if<plan::Launch>(&step.what)) {
      kernels.insert(launch->kernel);
    } else if (const auto* loop = std::get_if<plan::While>(&step.what)) {
      CollectKernels(loop->condition, kernels);
      CollectKernels(loop->body, kernels);
    } else if (const auto* conditional = std::get_if<plan::Conditional>(&step.what)) {
      for (const plan::Steps& branch : conditional->branches) CollectKernels(branch, kernels);
    }
  }
}

Row RowOf(const GpuKernel& kernel, const kernel::GpuLaunch& grid, const std::string& name) {
  const GpuResources r = kernel.resources();
  const bool is_known = r.registers >= 0;
  return {kernel.symbol(),
          Cat(grid.blocks),
          Cat(grid.threads),
          is_known ? Cat(r.registers) : "emulated",
          is_known ? Cat(r.local_bytes) : "emulated",
          Cat(r.shared_bytes),
          Cat(grid.shared_bytes),
          name};
}

}  // namespace

std::string ResourceTable(const plan::Program& program,
                          const std::function<Result<GpuKernel*>(const std::string&)>& find) {
  std::set<int> kernels;
  CollectKernels(program.prologue, kernels);
  CollectKernels(program.steps, kernels);
  std::vector<Row> rows = {{"symbol", "blocks", "threads", "registers", "local bytes",
                            "static shared", "dynamic shared", "kernel"}};
  for (int k : kernels) {
    const plan::ScheduledKernel& kernel = program.kernels[static_cast<size_t>(k)];
    for (size_t i = 0; i < kernel.gpu.launches.size(); ++i) {
      Result<GpuKernel*> found = find(plan::GpuSymbol(program, k, i));
      if (found.ok()) rows.push_back(RowOf(**found, kernel.gpu.launches[i], kernel.kernel.name));
    }
  }
  if (rows.size() == 1) return "";

  std::vector<size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text =
      "What the device reports: registers and local memory (spilled registers and arrays) of a "
      "thread,\nshared memory in bytes of a block.\n\n";
  for (const Row& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string space(widths[c] - row[c].size(), ' ');
      const bool is_number = c > 0 && c + 1 < row.size();
      // Nothing behind the last one.
      text += is_number ? Cat(space, row[c], "  ") : Cat(row[c], c == 0 ? space + "  " : "");
    }
    text += "\n";
  }
  return text;
}

}  // namespace kiln::device

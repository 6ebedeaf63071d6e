#include "device/gpu/resources.h"

#include <algorithm>
#include <vector>

#include "base/strings.h"

namespace kiln::device {
namespace {

using Row = std::vector<std::string>;

Row RowOf(const GpuKernel& kernel, const program::Grid& grid, const std::string& name) {
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

std::string ResourceTable(const program::Program& program,
                          const std::function<Result<GpuKernel*>(const std::string&)>& find) {
  std::vector<Row> rows = {{"symbol", "blocks", "threads", "registers", "local bytes",
                            "static shared", "dynamic shared", "kernel"}};
  for (const program::Kernel& kernel : program.kernels) {
    for (const program::Grid& grid : kernel.grids) {
      Result<GpuKernel*> found = find(grid.symbol);
      if (found.ok()) rows.push_back(RowOf(**found, grid, kernel.name));
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

#include "support/emulated_run.h"

namespace kiln::testing {

Status RunEmulated(const device::EmulatedKernel& kernel, const device::GpuGrid& grid,
                   std::span<const device::GpuSpan> args, const device::EmulatorOptions& options) {
  static runtime::ThreadPool pool(2);
  return device::Emulator(pool, options).Run(kernel, grid, args);
}

}  // namespace kiln::testing

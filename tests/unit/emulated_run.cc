#include "emulated_run.h"

#include "tensor/element_type.h"

namespace kiln::testing {

Status RunEmulated(const plan::ScheduledKernel& kernel, const std::string& object,
                   std::span<void* const> args) {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<device::EmulatedCode> code,
                        device::EmulatedCode::Load(object));
  KILN_ASSIGN_OR_RETURN(const device::EmulatedKernel* found, code->Find(kernel.kernel.name));
  std::vector<device::GpuSpan> spans;
  for (size_t i = 0; i < args.size(); ++i) {
    const kernel::Param& p = kernel.kernel.params[i];
    spans.push_back({static_cast<std::byte*>(args[i]), p.elements * ByteWidth(p.type)});
  }
  return RunEmulated(*found, {kernel.gpu.blocks, kernel.gpu.threads, kernel.gpu.shared_bytes},
                     spans, {.watch_global_memory = true});
}

Status RunEmulated(const device::EmulatedKernel& kernel, const device::GpuGrid& grid,
                   std::span<const device::GpuSpan> args, const device::EmulatorOptions& options) {
  static runtime::ThreadPool pool(2);
  return device::Emulator(pool, options).Run(kernel, grid, args);
}

}  // namespace kiln::testing

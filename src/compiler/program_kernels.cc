#include "compiler/program_kernels.h"

#include "base/strings.h"
#include "codegen/kernel_uses.h"
#include "compiler/library_product.h"

namespace kiln::compiler {

void DescribeKernels(codegen::LoweredProgram& lowered, target::Kind target) {
  program::Program& program = lowered.program;
  const std::vector<codegen::KernelUse> uses = codegen::KernelUses(lowered);
  program.kernels.clear();
  for (size_t k = 0; k < lowered.kernels.size(); ++k) {
    const kernel::ScheduledKernel& scheduled = lowered.kernels[k];
    program::Kernel& kernel = program.kernels.emplace_back();
    kernel.name = scheduled.kernel.name;
    if (target != target::Kind::kGpu || !uses[k].launched) continue;
    for (size_t i = 0; i < scheduled.gpu.launches.size(); ++i) {
      const kernel::GpuLaunch& launch = scheduled.gpu.launches[i];
      kernel.grids.push_back(
          {Cat("k", k, i > 0 ? Cat("_", i) : "", "_", kernel.name, "_", program.id), launch.blocks,
           launch.threads, launch.shared_bytes});
    }
    kernel.library = AsLibraryProduct(scheduled);
  }
}

}  // namespace kiln::compiler

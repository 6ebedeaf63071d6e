#include "codegen/kernel_uses.h"

#include "program/steps.h"

namespace kiln::codegen {

std::vector<KernelUse> KernelUses(const LoweredProgram& lowered) {
  std::vector<KernelUse> uses(lowered.kernels.size());
  program::ForEachStep(lowered.program.steps, [&](const program::Step& step, bool in_loop) {
    const auto* launch = std::get_if<program::Launch>(&step.what);
    if (!launch) return;
    KernelUse& use = uses[static_cast<size_t>(launch->kernel)];
    use.launched = true;
    (launch->inlined ? use.inlined : use.called) = true;
    use.looped |= in_loop;
    for (const kernel::KernelPart& part : kernel::PartsOf(lowered.KernelOf(*launch).schedule)) {
      KernelUse& of = uses[static_cast<size_t>(part.kernel)];
      of.called = true;
      of.looped |= in_loop;
    }
  });
  program::ForEach<program::Launch>(lowered.program.prologue, [&](const program::Launch& launch) {
    uses[static_cast<size_t>(launch.kernel)].launched = true;
  });
  return uses;
}

}  // namespace kiln::codegen

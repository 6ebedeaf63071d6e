#include "codegen/kernel_uses.h"

#include "program/steps.h"

namespace kiln::codegen {

IdVector<program::KernelId, KernelUse> KernelUses(const LoweredProgram& lowered) {
  IdVector<program::KernelId, KernelUse> uses(lowered.kernels.size());
  const auto add = [&](const program::Step& step, bool in_loop) {
    const auto* launch = std::get_if<program::Launch>(&step.what);
    if (!launch) return;
    KernelUse& use = uses[launch->kernel];
    use.launched = true;
    (launch->inlined ? use.inlined : use.called) = true;
    use.looped |= in_loop;
    for (const kernel::KernelPart& part : kernel::PartsOf(lowered.KernelOf(*launch).schedule)) {
      KernelUse& of = uses[part.kernel];
      of.called = true;
      of.looped |= in_loop;
    }
  };
  program::ForEachStep(lowered.program.binding, add);
  program::ForEachStep(lowered.program.steps, add);
  program::ForEach<program::Launch>(lowered.program.prologue, [&](const program::Launch& launch) {
    uses[launch.kernel].launched = true;
  });
  return uses;
}

}  // namespace kiln::codegen

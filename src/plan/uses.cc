#include "plan/uses.h"

namespace kiln::plan {
namespace {

void Collect(const Program& program, const Steps& steps, bool in_loop,
             std::vector<KernelUse>& uses) {
  for (const Step& step : steps) {
    if (const auto* launch = std::get_if<Launch>(&step.what)) {
      const auto k = static_cast<size_t>(launch->kernel);
      uses[k].launched = true;
      (launch->inlined ? uses[k].inlined : uses[k].called) = true;
      uses[k].looped |= in_loop;
      for (const BundlePart& part : program.kernels[k].parts) {
        KernelUse& of = uses[static_cast<size_t>(part.kernel)];
        of.called = true;
        of.looped |= in_loop;
      }
    } else if (const auto* loop = std::get_if<While>(&step.what)) {
      Collect(program, loop->condition, true, uses);
      Collect(program, loop->body, true, uses);
    } else if (const auto* conditional = std::get_if<Conditional>(&step.what)) {
      for (const Steps& branch : conditional->branches) Collect(program, branch, in_loop, uses);
    }
  }
}

}  // namespace

std::vector<KernelUse> KernelUses(const Program& program) {
  std::vector<KernelUse> uses(program.kernels.size()), before(program.kernels.size());
  Collect(program, program.steps, false, uses);
  Collect(program, program.prologue, false, before);
  for (size_t k = 0; k < uses.size(); ++k) uses[k].launched |= before[k].launched;
  return uses;
}

}  // namespace kiln::plan

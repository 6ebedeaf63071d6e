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

void Collect(const Steps& steps, std::vector<bool>& used) {
  auto add = [&](const Slice& slice) {
    if (slice.allocation >= 0) used[static_cast<size_t>(slice.allocation)] = true;
  };
  for (const Step& step : steps) {
    if (const auto* launch = std::get_if<Launch>(&step.what)) {
      for (const Slice& arg : launch->args) add(arg);
    } else if (const auto* copy = std::get_if<Copy>(&step.what)) {
      add(copy->from);
      add(copy->to);
    } else if (const auto* call = std::get_if<Call>(&step.what)) {
      for (const Slice& arg : call->args) add(arg);
    } else if (const auto* loop = std::get_if<While>(&step.what)) {
      add(loop->predicate);
      Collect(loop->condition, used);
      Collect(loop->body, used);
    } else if (const auto* conditional = std::get_if<Conditional>(&step.what)) {
      add(conditional->index);
      for (const Steps& branch : conditional->branches) Collect(branch, used);
    }
  }
}

}  // namespace

std::vector<bool> AllocationUses(const Program& program) {
  std::vector<bool> used(program.allocations.size(), false);
  Collect(program.steps, used);
  return used;
}

std::vector<KernelUse> KernelUses(const Program& program) {
  std::vector<KernelUse> uses(program.kernels.size()), before(program.kernels.size());
  Collect(program, program.steps, false, uses);
  Collect(program, program.prologue, false, before);
  for (size_t k = 0; k < uses.size(); ++k) uses[k].launched |= before[k].launched;
  return uses;
}

}  // namespace kiln::plan

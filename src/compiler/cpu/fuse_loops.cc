#include "compiler/cpu/fuse_loops.h"

#include <algorithm>

#include "program/steps.h"

namespace kiln::compiler {
namespace {

using kernel::ScheduledKernel;
using program::Steps;

// A longer loop is not fused, to save compile time: the cost of a call is small beside such a body.
constexpr int64_t kMaxSteps = 256;
// The limit of nodes of all kernels inlined in one loop.
constexpr int64_t kMaxNodes = 4000;
// For a kernel of more work a call costs less than a hundredth of it.
constexpr int64_t kMaxWork = 1 << 14;

int64_t CountNodes(const ScheduledKernel& k) {
  int64_t nodes = 0;
  for (const kernel::Stage& stage : k.kernel.stages) {
    nodes += static_cast<int64_t>(stage.nodes.size() + stage.stores.size());
  }
  return nodes;
}

bool MayStandInline(const ScheduledKernel& k) {
  const auto* nest = std::get_if<kernel::CpuNestSchedule>(&k.schedule);
  if (!nest || k.kernel.kind != kernel::Kernel::Kind::kNest) return false;
  if (nest->max_tasks > 1 || nest->split > 0 || nest->scratch_bytes > 0 || nest->nontemporal) {
    return false;
  }
  if (nest->strips.width > 0) return false;
  int64_t work = CountNodes(k);
  for (const kernel::Variable& v : k.kernel.variables) {
    if (work > kMaxWork) return false;
    work *= std::max<int64_t>(v.extent, 1);
  }
  return work <= kMaxWork;
}

int64_t CountSteps(const Steps& steps) {
  int64_t count = 0;
  program::ForEachStep(steps, [&](const program::Step&, bool) { ++count; });
  return count;
}

class Fuser {
 public:
  explicit Fuser(const codegen::ScheduledKernels& kernels) : kernels_(kernels) {}

  void Walk(Steps& steps, bool inside) {
    for (program::Step& step : steps) {
      std::visit([&](auto& s) { Walk(s, inside); }, step.what);
    }
  }

 private:
  void Walk(program::Launch& launch, bool inside) {
    if (!inside) return;
    const ScheduledKernel& k = kernels_[launch.kernel];
    int64_t nodes = CountNodes(k);
    if (nodes > nodes_left_ || !MayStandInline(k)) return;
    launch.inlined = true;
    nodes_left_ -= nodes;
  }
  void Walk(program::Copy&, bool) {}
  void Walk(program::HostCall&, bool) {}
  void Walk(program::While& loop, bool inside) {
    bool outermost = !inside && CountSteps(loop.condition) + CountSteps(loop.body) <= kMaxSteps;
    if (outermost) nodes_left_ = kMaxNodes;
    loop.fused = inside || outermost;
    Walk(loop.condition, loop.fused);
    Walk(loop.body, loop.fused);
  }
  void Walk(program::Conditional& conditional, bool inside) {
    for (Steps& branch : conditional.branches) Walk(branch, inside);
  }

  const codegen::ScheduledKernels& kernels_;
  int64_t nodes_left_ = 0;
};

}  // namespace

void FuseLoops(codegen::LoweredProgram& lowered) {
  Fuser(lowered.kernels).Walk(lowered.program.steps, false);
}

}  // namespace kiln::compiler

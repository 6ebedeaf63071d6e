#include "kernel/schedule/gpu/scheduler.h"

#include <algorithm>

#include "base/integers.h"
#include "kernel/build.h"
#include "kernel/contraction.h"
#include "kernel/schedule/gpu/gemm.h"
#include "kernel/schedule/gpu/nest.h"

namespace kiln::kernel {
namespace {

// An op on an element takes about a fiftieth of the time to store and reload it.
constexpr int64_t kMaxWork = 48;

// Every tile of the result reads its operands' pieces anew.
int64_t ReadsOf(const ir::Instruction& dot, int operand, const target::Gpu& gpu) {
  constexpr int64_t kNever = int64_t{1} << 40;
  auto kernel = BuildKernel(GroupOf(dot), "reads");
  if (!kernel.ok()) return kNever;
  auto factors = FindGpuFactors(*kernel);
  if (!factors) return kNever;
  // Factors that are converted, as they are multiplied in another type, or guarded.
  const Stage& stage = kernel->stages.front();
  bool is_x = std::ranges::any_of(GpuNodesOf(stage, factors->x), [&](NodeId n) {
    return stage.nodes[n].param == ParamId(operand);
  });
  const int64_t others = kernel->PointsOf(is_x ? factors->columns : factors->rows);
  auto schedule = ScheduleGpuGemm(*kernel, gpu);
  if (!schedule) return others;
  return CeilDiv(others, is_x ? schedule->gemm.n : schedule->gemm.m);
}

}  // namespace

Result<ScheduledKernel> GpuScheduler::Schedule(Kernel kernel, const IsConstant&) const {
  GpuSchedule schedule = ScheduleGpu(kernel, gpu_);
  return ScheduledKernel{std::move(kernel), std::move(schedule)};
}

// How long it takes does not matter: a launch is dear.
std::optional<double> GpuScheduler::PartMicroseconds(const ScheduledKernel& k) const {
  const auto* alone = std::get_if<GpuSchedule>(&k.schedule);
  if (!alone || k.kernel.kind != Kernel::Kind::kNest) return std::nullopt;
  if (alone->launches.size() > 1 || alone->scratch_bytes > 0) return std::nullopt;
  return 0;
}

// Gives each kernel blocks of its own.
KernelSchedule GpuScheduler::ScheduleBundle(
    const std::vector<KernelPart>& parts,
    const std::vector<const ScheduledKernel*>& kernels) const {
  std::vector<const Kernel*> alone;
  for (const ScheduledKernel* k : kernels) alone.push_back(&k->kernel);
  std::vector<GpuSchedule> schedules;
  GpuBundle bundle;
  bundle.together = ScheduleSideBySide(alone, gpu_, schedules);
  for (size_t p = 0; p < parts.size(); ++p) {
    bundle.parts.push_back({parts[p], std::move(schedules[p])});
  }
  return bundle;
}

bool GpuScheduler::ReadsThrough(const ir::Instruction& dot, int operand, int64_t ops,
                                bool heavy) const {
  return (ops + (heavy ? kHeavyOps : 0)) * ReadsOf(dot, operand, gpu_) <= kMaxWork;
}

}  // namespace kiln::kernel

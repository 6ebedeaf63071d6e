// Kernels on GPUs.
#pragma once

#include "kernel/schedule/scheduler.h"

namespace kiln::kernel {

class GpuScheduler : public Scheduler {
 public:
  // Of a machine that outlives it.
  explicit GpuScheduler(const target::Gpu& gpu) : gpu_(gpu) {}

  Result<ScheduledKernel> Schedule(Kernel kernel, const IsConstant& is_constant) const override;
  bool has_chains() const override { return false; }
  std::optional<CpuChainSchedule> ScheduleChain(const Chain&, const IsConstant&) const override {
    return std::nullopt;
  }
  std::optional<double> PartMicroseconds(const ScheduledKernel& kernel) const override;
  // A launch is expensive, even of little work.
  bool BundlePays(double) const override { return true; }
  KernelSchedule ScheduleBundle(const std::vector<KernelPart>& parts,
                                const std::vector<const ScheduledKernel*>& kernels) const override;
  int64_t OpsWorthStoring(int64_t) const override { return 8; }
  bool ReadsThrough(const ir::Instruction& dot, int operand, int64_t ops,
                    bool heavy) const override;
  bool SpoilsGemm(const Kernel&, const ir::Instruction&) const override { return false; }
  bool CrowdsGemm(int64_t, int64_t, int64_t) const override { return false; }
  bool KeepsColumns(int64_t, int64_t) const override { return true; }
  bool TurnsRows() const override { return false; }
  bool KeepsNarrow(ElementType, ElementType, int64_t) const override { return true; }
  bool RoundsToBf16() const override { return false; }
  bool TransformsTiles(int64_t, int64_t, int64_t, int64_t) const override { return false; }
  bool SharesWindows() const override { return false; }

 private:
  const target::Gpu& gpu_;
};

}  // namespace kiln::kernel

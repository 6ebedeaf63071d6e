// Kernels on CPUs.
#pragma once

#include "kernel/schedule/scheduler.h"

namespace kiln::kernel {

class CpuScheduler : public Scheduler {
 public:
  // Of a machine that outlives it.
  explicit CpuScheduler(const target::Cpu& cpu) : cpu_(cpu) {}

  Result<ScheduledKernel> Schedule(Kernel kernel, const IsConstant& is_constant) const override;
  bool has_chains() const override { return true; }
  std::optional<CpuChainSchedule> ScheduleChain(const Chain& chain,
                                                const IsConstant& is_constant) const override;
  std::optional<double> PartMicroseconds(const ScheduledKernel& kernel) const override;
  bool BundlePays(double microseconds) const override;
  KernelSchedule ScheduleBundle(const std::vector<KernelPart>& parts,
                                const std::vector<const ScheduledKernel*>& kernels) const override;
  int64_t OpsWorthStoring(int64_t bytes) const override { return bytes <= cpu_.l2_bytes ? 2 : 8; }
  bool ReadsThrough(const ir::Instruction& dot, int operand, int64_t ops,
                    bool heavy) const override;
  bool SpoilsGemm(const Kernel& fused, const ir::Instruction& dot) const override;
  bool CrowdsGemm(int64_t arrays, int64_t bytes, int64_t heavy) const override;
  bool KeepsColumns(int64_t columns, int64_t column_bytes) const override;
  bool TurnsRows() const override { return true; }
  bool KeepsNarrow(ElementType lhs, ElementType rhs, int64_t side_by_side) const override;
  bool RoundsToBf16() const override { return cpu_.allow_bf16; }
  bool TransformsTiles(int64_t tiles, int64_t places, int64_t inputs,
                       int64_t outputs) const override;
  bool SharesWindows() const override { return true; }

 private:
  const target::Cpu& cpu_;
};

}  // namespace kiln::kernel

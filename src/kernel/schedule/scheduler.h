// Schedules and profitability for one kind of target. Passes and lowering ask it, and never for the
// kind of the target.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"
#include "kernel/chain.h"
#include "kernel/schedule/cpu/chain.h"
#include "kernel/scheduled_kernel.h"
#include "target/target.h"

namespace kiln::kernel {

// Whether a parameter of a kernel is the same in every run: it may then be packed once.
using IsConstant = std::function<bool(ParamId)>;

class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // --- Schedules

  virtual Result<ScheduledKernel> Schedule(Kernel kernel, const IsConstant& is_constant) const = 0;
  // Whether a gemm and the kernel behind it may be one (chain.h), and how; nothing where it does
  // not pay.
  virtual bool has_chains() const = 0;
  virtual std::optional<CpuChainSchedule> ScheduleChain(const Chain& chain,
                                                        const IsConstant& is_constant) const = 0;
  // Kernels side by side (bundle.h): about how long one that may be a part takes, and nothing of
  // others; whether parts that take so long together are worth a bundle; and how the parts, which
  // are `kernels`, share its launch.
  virtual std::optional<double> PartMicroseconds(const ScheduledKernel& kernel) const = 0;
  virtual bool BundlePays(double microseconds) const = 0;
  virtual KernelSchedule ScheduleBundle(
      const std::vector<KernelPart>& parts,
      const std::vector<const ScheduledKernel*>& kernels) const = 0;

  // --- Profitability

  // How many simple ops on each element of a value cost as much as it does to store the value, of
  // so many bytes, and to read it.
  virtual int64_t OpsWorthStoring(int64_t bytes) const = 0;
  // Whether so many elementwise ops, and `heavy` ones among them, may be done on the elements of a
  // dot's operand each time that the gemm reads them.
  virtual bool ReadsThrough(const ir::Instruction& dot, int operand, int64_t ops,
                            bool heavy) const = 0;
  // Whether the kernel that a fusion around a dot has become is none of the target's gemms, which
  // the dot alone would be.
  virtual bool SpoilsGemm(const Kernel& fused, const ir::Instruction& dot) const = 0;
  // Whether an epilogue is faster as a kernel behind the gemm. It reads and writes so many arrays
  // of the result's size, each of so many bytes, and does so many quotients, roots and functions on
  // each element.
  virtual bool CrowdsGemm(int64_t arrays, int64_t bytes, int64_t heavy) const = 0;
  // Whether a kernel that walks so many columns of so many bytes again and again keeps strips of
  // them at hand.
  virtual bool KeepsColumns(int64_t columns, int64_t column_bytes) const = 0;
  // Whether rows may be written in another order of their dimensions than they are read.
  virtual bool TurnsRows() const = 0;
  // Whether factors of narrow types, the left one's read in windows, stay as they are in memory:
  // gemms multiply them so, where so many of the left one's lie side by side along the sum, or
  // convert them as they read them, again and again.
  virtual bool KeepsNarrow(ElementType lhs, ElementType rhs, int64_t side_by_side) const = 0;
  // Whether factors of f32 may be rounded to bf16, which makes products faster.
  virtual bool RoundsToBf16() const = 0;
  // Whether a convolution of f32 by a fixed filter of 3 x 3 is faster as products of tiles of 4 x 4
  // that are transformed (passes/expand/convolution_tiles.cc): so many for so many places of the
  // result, of so many input features, to so many output features.
  virtual bool TransformsTiles(int64_t tiles, int64_t places, int64_t inputs,
                               int64_t outputs) const = 0;
  // Whether neighbouring places of windows are made at one point of a kernel, which reads what they
  // share once.
  virtual bool SharesWindows() const = 0;
};

// The row of each kind of target. For REFERENCE, which runs no kernels, the scheduler of passes
// without a target. The target must outlive it.
std::unique_ptr<const Scheduler> SchedulerFor(const target::Target& target);

}  // namespace kiln::kernel

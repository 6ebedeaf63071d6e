// The kernels of fusions, each built once: passes decide by a kernel, and lowering compiles the one
// that they had.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"
#include "kernel/chain.h"
#include "kernel/kernel.h"
#include "kernel/schedule/cpu/chain.h"

namespace kiln::kernel {

// Keeps an answer for as long as the fusion's computation, with all that it calls, stays as it is.
// One thread at a time.
class FusionAnalysis {
 public:
  FusionAnalysis();
  ~FusionAnalysis();
  // BuildKernel(GroupOf(instruction)), under the instruction's name. Valid up to the next call for
  // an instruction that is no fusion, or up to a change of the fusion.
  const Result<Kernel>& KernelOf(const ir::Instruction& instruction);

  // The text of an instruction's kernel, which must be one. Valid as KernelOf's result is.
  const std::string& TextOf(const ir::Instruction& instruction);

  // The schedule by which a pass has made a chain, and by gemm operand whether it was a constant
  // then. Null where the chain, or a constant among its operands, is not the same any more.
  void KeepSchedule(const ir::Instruction& chain, CpuChainSchedule schedule,
                    std::vector<bool> constants);
  const CpuChainSchedule* ScheduleOf(const ir::Instruction& chain,
                                     const std::vector<bool>& constants) const;

 private:
  // The layers of a network have the same fusions: a kernel is built once for each form.
  struct Form {
    std::optional<Kernel> kernel;  // of the first fusion of the form
    std::string text;              // of the kernel, when it has been asked for
  };
  struct Entry {
    int64_t version = 0;
    std::optional<Result<Kernel>> kernel;
    Form* form = nullptr;                      // of the kernel
    std::optional<CpuChainSchedule> schedule;  // of a chain
    std::vector<bool> constants;               // by which the schedule was made
  };
  // The entry of a fusion, emptied where it is about another state of the computation.
  Entry& EntryOf(const ir::Instruction& fusion);

  std::unordered_map<const ir::Computation*, Entry> entries_;
  std::unordered_map<std::string, Form> forms_;  // by ir::FormOf
  std::optional<Result<Kernel>> single_;         // of the last instruction that is no fusion
  std::string single_text_;
};

}  // namespace kiln::kernel

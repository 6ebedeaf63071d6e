// The kernels of a chain (kernel/chain.h), and where their arguments are.
#pragma once

#include <string>
#include <vector>

#include "kernel/chain.h"
#include "kernel/schedule/scheduler.h"
#include "kernel/scheduled_kernel.h"

namespace kiln::compiler {

// The arguments of a chain's launch.
struct ChainLayout {
  struct Place {
    enum class Kind : uint8_t { kOperand, kResult, kScratch };  // of the chain
    Kind kind = Kind::kOperand;
    int64_t number = 0;  // of the operand or result; where it begins in the scratch
    int64_t bytes = 0;   // of scratch
  };
  std::vector<Place> gemm_inputs, gemm_results, rows_args;
  // From the beginning of the scratch: packed operands, then the gemm's own scratch.
  int64_t gemm_scratch = 0;
  int64_t scratch_bytes = 0;
};

struct ChainKernels {
  kernel::ScheduledKernel gemm, rows, chain;  // the numbers of the parts are not set
  ChainLayout layout;
  std::string text;  // equal text, equal kernels
};

// UNIMPLEMENTED if the target has no such kernel. `constant` tells for the gemm's operands whether
// they are the same in every run. `known`: the chain's schedule, or null.
Result<ChainKernels> ScheduleChainKernels(const std::string& name, kernel::Chain chain,
                                          const kernel::Scheduler& scheduler,
                                          const std::vector<bool>& constant,
                                          const kernel::CpuChainSchedule* known);

}  // namespace kiln::compiler

// How a chain (kernel/chain.h) runs on a CPU, as data.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "kernel/chain.h"
#include "kernel/contraction.h"
#include "kernel/schedule/cpu/gemm.h"
#include "kernel/schedule/cpu/nest.h"
#include "target/target.h"

namespace kiln::kernel {

// Blocks of rows that lie one after the other in memory: of each the gemm's items go first, then
// the one item of the rows' kernel. An item of the chain is some blocks.
struct CpuChainSchedule {
  Contraction contraction;
  GemmSchedule gemm;
  CpuNestSchedule rows;
  int64_t blocks = 1, blocks_per_item = 1;
  int64_t gemm_items = 1;  // of a block
  int64_t block_rows = 1;  // the gemm's, of a block
  int64_t items = 1, max_tasks = 1;

  // Elements of a result of the gemm for one block.
  int64_t block_elements() const { return block_rows * contraction.problem.n; }
};

// Nothing where the two kernels cannot go block by block, or are better apart: where the right
// operand and a block of a good size are not together in the second cache, or there are too few
// blocks for the threads that the gemm is worth. A pure function of its arguments. `is_constant` is
// of parameters of the gemm.
std::optional<CpuChainSchedule> ScheduleChain(const Chain& chain, const target::Cpu& cpu,
                                              const std::function<bool(ParamId)>& is_constant);

}  // namespace kiln::kernel

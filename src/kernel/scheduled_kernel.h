// A kernel with the schedule for a target: what code is generated of.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/schedule/cpu/nest.h"
#include "kernel/schedule/gpu/schedule.h"

namespace kiln::kernel {

struct Contraction;      // kernel/contraction.h
struct GemmSchedule;     // kernel/schedule/cpu/gemm.h
struct CpuSortSchedule;  // kernel/schedule/cpu/sort.h

// A kernel of a bundle or chain. Its arguments are the bundle's from `first_arg` on, and its items
// are the bundle's from `first_item` on, of which each of its own counts for `weight`.
struct ScheduledPart {
  int kernel = -1;  // the part's number among the program's kernels
  int first_arg = 0;
  int64_t first_item = 0, weight = 1;
  GpuSchedule gpu;  // on a GPU, where it is the bundle's own
};

// How the two kernels of a chain alternate: for each block of rows the product's items of the
// block, then the other kernel's one item. Items of the chain are so many blocks.
struct ChainBlocks {
  int64_t blocks = 1, per_item = 1;
  // An argument in scratch of which each item has a piece, `item_bytes` long, for one block. The
  // kernels find a block's part `block_bytes` further than the part of the block before.
  struct Piece {
    int arg = 0;  // of the chain's
    int64_t item_bytes = 0, block_bytes = 0;
  };
  std::vector<Piece> pieces;
};

struct ScheduledKernel {
  // How a packed operand of a matrix product is made: its own kernel before the product's. A bundle
  // is kernels of the program side by side, a chain a product and another one after it.
  enum class Form : uint8_t { kNest, kGemm, kPackLhs, kPackRhs, kBundle, kChain };
  Kernel kernel;
  Form form = Form::kNest;
  CpuNestSchedule cpu;                          // kNest on a CPU
  std::shared_ptr<const CpuSortSchedule> sort;  // of a sort, in place of `cpu`
  // Of kGemm, kPackLhs and kPackRhs on a CPU.
  std::shared_ptr<const Contraction> contraction;
  std::shared_ptr<const GemmSchedule> gemm;
  // Of kBundle and kChain, whose kernels have no stages. Of a chain's parts a block is `weight`
  // items.
  std::vector<ScheduledPart> parts;
  ChainBlocks chain;
  bool on_gpu = false;
  GpuSchedule gpu;  // on a GPU, and then none of the others
  // On a CPU.
  int64_t items = 1;      // [0, items) are independent
  int64_t max_tasks = 1;  // pieces worth their dispatch
  bool finish = false;    // one more call, [items, items + 1), after all others
};

}  // namespace kiln::kernel

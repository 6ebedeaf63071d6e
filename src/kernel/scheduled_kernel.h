// A kernel with the schedule for a target: the input of code generation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "base/id.h"
#include "kernel/kernel.h"
#include "kernel/schedule/cpu/nest.h"
#include "kernel/schedule/cpu/sort.h"
#include "kernel/schedule/gpu/schedule.h"

namespace kiln::program {
struct Kernel;  // of a program, of which this room knows no more
}

namespace kiln::kernel {

struct Contraction;   // kernel/contraction.h
struct GemmSchedule;  // kernel/schedule/cpu/gemm.h

// A gemm on a CPU. An operand that is packed is made by a kernel of its own before the gemm's.
struct CpuGemm {
  enum class Role : uint8_t { kGemm, kPackLhs, kPackRhs };
  Role role = Role::kGemm;
  std::shared_ptr<const Contraction> contraction;
  std::shared_ptr<const GemmSchedule> schedule;
  int64_t max_tasks = 1;  // pieces worth their dispatch

  int64_t items() const;        // of the role
  double microseconds() const;  // of the role, about, on one thread
};

// A kernel of the program that is a part of another one, whose arguments from `first_arg` on are
// the part's.
struct KernelPart {
  Id<program::Kernel> kernel;
  int first_arg = 0;
};

// Kernels side by side (kernel/bundle.h). The bundle itself has no stages.
struct CpuBundle {
  // Its items are the bundle's from `first_item` on, of which each of its own counts for `weight`.
  struct Part : KernelPart {
    int64_t first_item = 0, weight = 1;
  };
  std::vector<Part> parts;
  int64_t items = 0, max_tasks = 1;
};

// A gemm and a kernel after it (kernel/chain.h), which alternate: for each block of rows the gemm's
// items of the block, then the other kernel's one item. The chain itself has no stages.
struct CpuChain {
  struct Part : KernelPart {
    int64_t block_items = 1;  // of a block
  };
  // An argument in scratch of which each item has a piece, `item_bytes` long, for one block. The
  // kernels find a block's part `block_bytes` further than the part of the block before.
  struct Piece {
    int arg = 0;  // of the chain's
    int64_t item_bytes = 0, block_bytes = 0;
  };
  std::vector<Part> parts;
  int64_t blocks = 1, blocks_per_item = 1;
  std::vector<Piece> pieces;
  int64_t items = 1, max_tasks = 1;
};

// Kernels side by side, each with blocks of its own in the one grid of the bundle.
struct GpuBundle {
  struct Part : KernelPart {
    GpuSchedule schedule;
  };
  std::vector<Part> parts;
  GpuSchedule together;
};

// Of nests, scatters and scans on a CPU the first.
using KernelSchedule = std::variant<CpuNestSchedule, CpuSortSchedule, CpuGemm, CpuBundle, CpuChain,
                                    GpuSchedule, GpuBundle>;

struct ScheduledKernel {
  Kernel kernel;
  KernelSchedule schedule;
};

// How a CPU's threads share a kernel: [0, count) are independent.
struct CpuItems {
  int64_t count = 1;
  int64_t max_tasks = 1;  // pieces worth their dispatch
  bool finish = false;    // one more call, [count, count + 1), after all others
  // About how long one thread takes for all; 0 where it is not known.
  double microseconds = 0;
  bool polls = false;  // asks for itself whether the run is to end

  // Items after which that is asked first, about four milliseconds of work; 0 where it polls.
  int64_t slice() const;
};
// Nothing on a GPU.
std::optional<CpuItems> ItemsOf(const KernelSchedule& schedule);

// What a GPU launches, which of a bundle is all of it; null on a CPU.
const GpuSchedule* GridsOf(const KernelSchedule& schedule);

// Of a bundle or chain; none of any other.
std::vector<KernelPart> PartsOf(const KernelSchedule& schedule);

// Bytes of scratch that a launch takes as its last argument; 0 for none. Of a chain its layout
// (compiler/chain_launch.h) has them.
int64_t ScratchBytes(const KernelSchedule& schedule);

}  // namespace kiln::kernel

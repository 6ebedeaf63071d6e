// How a nest runs on a GPU, as data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "target/target.h"

namespace kiln::kernel {

struct GpuNestSchedule {
  enum class Form : uint8_t {
    kElementwise,   // a thread per `vector` consecutive points of the outer variables, grid-stride
    kTranspose,     // tile x tile through shared memory, both sides coalesced
    kRowReduce,     // a warp or a block per outer point; lanes along the reduction; shuffles
    kColumnReduce,  // lanes along the innermost outer variable, rows over the threads of a block
    kSerial,        // a thread per outer point, inner loops serial: right for anything
  };
  Form form = Form::kSerial;
  int threads = 256;  // per block
  int64_t blocks = 1;
  int64_t first_block = 0;  // of the grid's, where it is a bundle's
  int vector = 1;           // elements per access
  int tile = 32;            // of kTranspose
  int64_t shared_bytes = 0;
  // As CpuNestSchedule's split: a second launch of one block combines the chunks in order.
  int64_t split = 0;
  int64_t chunks = 1;
  int64_t scratch_bytes = 0;

  std::string ToString() const;
};

// The one load that walks memory across the innermost outer variable (`column`) while an outer one
// (`row`) walks along it: what a transpose brings through shared memory.
struct TransposeLoad {
  int node = -1, row = -1, column = -1;
};
std::optional<TransposeLoad> FindTransposeLoad(const Kernel& kernel);

GpuNestSchedule ScheduleNest(const Kernel& kernel, const target::Gpu& gpu);

// A grid for kernels side by side: each has blocks of its own, all of one size. `parts` become the
// kernels' schedules; what is returned is the grid's.
GpuNestSchedule ScheduleSideBySide(const std::vector<const Kernel*>& kernels,
                                   const target::Gpu& gpu, std::vector<GpuNestSchedule>& parts);

}  // namespace kiln::kernel

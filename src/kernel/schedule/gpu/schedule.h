// How a kernel runs on a GPU, as data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/element_type.h"

namespace kiln::kernel {

// One launch: a grid of blocks, all of one size.
struct GpuLaunch {
  int64_t blocks = 1;
  int threads = 256;  // per block, whole warps
  int64_t shared_bytes = 0;
  // Of kTeams: so many threads take a point of the outer variables together. A team of less than a
  // block is a warp or a power of two of its lanes; `columns`: neighbouring threads are of
  // neighbouring teams, for memory that goes along the outer variables.
  int team = 1;
  bool columns = false;
  bool operator==(const GpuLaunch&) const = default;
};

// Of kProduct: a block's tile of the result, which takes pieces of both factors, `k` long, and a
// thread's part of it.
struct GpuTile {
  int m = 0, n = 0, k = 0;
  int thread_m = 0, thread_n = 0;

  // A row more than the tile has, so that columns do not all fall on one bank.
  int row_pitch() const { return m + 4; }
  int column_pitch() const { return n + 4; }
  int64_t SharedBytes(ElementType type) const {
    return int64_t{k} * (row_pitch() + column_pitch()) * ByteWidth(type);
  }
};

struct GpuSchedule {
  enum class Form : uint8_t {
    kElementwise,  // a thread per `vector` consecutive points of the outer variables, grid-stride
    kTranspose,    // tile x tile through shared memory, both sides coalesced
    kTeams,        // some threads per point of the outer variables, which share the inner points
    kProduct,      // a block per tile of a matrix product
    kSerial,       // a thread per point, what goes in order in a loop: right for anything
    kScan,         // a block per point of the outer variables, or several, along what is scanned
    kSort,         // tiles in shared memory, then runs merged in pairs
    kScatter,      // a block per point of the outer variables; its threads share one update after
                   // the other
  };
  Form form = Form::kSerial;
  // One after the other, with the same arguments; each has code of its own.
  std::vector<GpuLaunch> launches = {{}};
  int64_t first_block = 0;  // of the grid's, where it is a part of a bundle
  int vector = 1;           // of kElementwise
  GpuTile product;          // of kProduct
  int tile = 32;            // of kTranspose: its sides; of kSort: records that a block sorts
  std::vector<int> lanes;   // of kTeams, by stage: consecutive inner points that a thread takes
  // Where there are few outer points each one's inner points are cut into chunks (1: they are not),
  // which blocks of the first launch reduce and the second launch combines in order. Partial
  // results are in scratch.
  int64_t chunks = 1;
  // An argument after the kernel's parameters, which no launch finds as another kernel left it.
  int64_t scratch_bytes = 0;

  std::string ToString() const;
};

// The bytes that partial results of one type take in scratch: by chunk and point.
int64_t GpuPartialBytes(ElementType type, int64_t points, int64_t chunks);

}  // namespace kiln::kernel

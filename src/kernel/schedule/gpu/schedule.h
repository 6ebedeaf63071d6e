// How a kernel runs on a GPU, as data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernel/kernel.h"
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

// The multiplication units and their types: a thread's fused multiply-adds of any type, or a warp's
// tensor cores. kF16K8 is sm_75's.
enum class GpuUnit : uint8_t { kFma, kF16K8, kF16, kBF16, kTF32, kS8, kF64 };

// Of kGemm: how a piece of one factor comes into shared memory, and how it lies there.
struct GpuPiece {
  NodeId node;  // of stage 0, whose values it has
  ElementType type = ElementType::kInvalid;
  bool along_k = false;        // in shared memory [point][k], otherwise [k][point]
  bool reads_along_k = false;  // neighbouring threads bring neighbours along k
  bool copied = false;         // asynchronously, past the registers
  int lanes = 1;               // consecutive elements that a thread brings at once
  int pitch = 0;               // elements from one row of shared memory to the next
};

// Of kGemm: a block's tile of the result, which takes pieces of both factors, `k` long, and a
// thread's or, where tensor cores multiply, a warp's part of it.
struct GpuTile {
  GpuUnit unit = GpuUnit::kFma;
  int m = 0, n = 0, k = 0;
  int part_m = 0, part_n = 0;
  int stages = 2;  // pieces in shared memory at once
  int passes = 1;  // sums go to shared memory in so many parts before they are finished
  int lanes = 1;   // consecutive columns that a thread finishes at once
  int group = 1;   // rows of tiles that go together through the columns: blocks that run side by
                   // side then share what they read
  GpuPiece x, y;
  ElementType sum = ElementType::kInvalid;

  int threads() const { return m / part_m * (n / part_n) * (unit == GpuUnit::kFma ? 1 : 32); }
  static int64_t Bytes(const GpuPiece& p, int points, int k) {
    return int64_t{p.along_k ? points : k} * p.pitch * ByteWidth(p.type);
  }
  int64_t XBytes() const { return Bytes(x, m, k); }
  int64_t StageBytes() const { return XBytes() + Bytes(y, n, k); }
  // Sums lie in rows that are a little longer than the tile's, so that not all begin on one bank.
  int sum_pitch() const { return n + 8; }
  int64_t SumBytes() const { return int64_t{m / passes} * sum_pitch() * ByteWidth(sum); }
  int64_t SharedBytes() const { return std::max(stages * StageBytes(), SumBytes()); }
  std::string ToString() const;
};

// For kTeams: values kept in a thread's registers from one stage to the next.
struct GpuKept {
  struct Place {
    StageId stage;
    NodeId node;
    bool operator==(const Place&) const = default;
  };
  struct Load {
    Place load;  // is not done:
    Place from;  // it has the value that this node had at the same point
  };
  // A store that is not done, for a later stage stores in the same place.
  struct Replaced {
    StageId stage;
    int store = -1;
  };
  int steps = 0;  // that a thread takes in every stage, one after the other; 0: nothing is kept
  std::vector<Load> loads;
  std::vector<Replaced> replaced;
};

struct GpuSchedule {
  enum class Form : uint8_t {
    kElementwise,  // a thread per `vector` consecutive points of the outer variables, grid-stride
    kTranspose,    // tile x tile through shared memory, both sides coalesced
    kTeams,        // some threads per point of the outer variables, which share the inner points
    kGemm,         // a block per tile of a gemm
    kSerial,       // a thread per point, what goes in order in a loop: right for anything
    kScan,         // a block per point of the outer variables, or several, along what is scanned
    kSort,         // tiles in shared memory, then runs merged in pairs; or a network of exchanges
    kScatter,      // a block per point of the outer variables; its threads share one update after
                   // the other
    kOwners,       // each block finds the updates of the targets that are its own, and does them
  };
  Form form = Form::kSerial;
  // One after the other, with the same arguments; each has code of its own.
  std::vector<GpuLaunch> launches = std::vector<GpuLaunch>(1);
  int64_t first_block = 0;       // of the grid's, where it is a part of a bundle
  int vector = 1;                // of kElementwise
  GpuTile gemm;                  // of kGemm
  int tile = 32;                 // of kTranspose: its sides; of kSort: records that a block sorts
  IdVector<StageId, int> lanes;  // of kTeams: consecutive inner points that a thread takes
  GpuKept kept;
  int64_t owners = 0;  // of kOwners: blocks among which the targets are divided
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
// One after the other's.
int64_t GpuPartialBytes(std::span<const Reduction> reductions, int64_t points, int64_t chunks);
// The same of the records of a sort, which has `size` of them at each point.
int64_t GpuRecordBytes(const std::vector<ElementType>& types, int64_t points, int64_t size);
// Of kOwners, in shared memory: the updates that a block has found among as many as it has threads.
// Of each where it goes, its number, the next one with the same target and whether it is the first;
// and how many there are of each warp.
inline int64_t GpuOwnersBytes(int threads) { return threads * int64_t{8 + 8 + 4 + 4} + 4 * 32; }

}  // namespace kiln::kernel

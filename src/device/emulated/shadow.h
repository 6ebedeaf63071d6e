// Shadow memory of the emulator: the last writer and reader of each cell. Threads that access the
// same memory without a barrier in between are unordered on a GPU: a race, unless all accesses are
// reads, or all are atomic.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "device/gpu/machine.h"
#include "frame/emulated.h"

namespace kiln::device {

struct Conflict {
  enum class Kind : uint8_t {
    kNone,
    kUnwritten,  // a read of what nobody has written
    kUnderWay,   // an asynchronous copy writes it, and has not been waited for
    kWritten,    // by another thread, without a barrier in between
    kRead,       // likewise
  };
  Kind kind = Kind::kNone;
  bool many = false;               // the others are several threads
  uint32_t block = 0, thread = 0;  // the other
};

// The shadow of one block's shared memory. A tag is the number of the preceding barrier in 20 bits,
// a bit for atomic accesses, and the thread plus 1 in 11 bits; 0: no access.
class SharedShadow {
 public:
  // A new block, with accesses of multiples of `granule` bytes. May throw bad_alloc.
  void Begin(int64_t bytes, int64_t granule);
  void Barrier();

  // Records an access of the bytes from `offset` on, in bounds.
  Conflict Access(int64_t offset, int64_t bytes, int kind, uint32_t thread);
  // An asynchronous copy is issued, or done.
  Conflict BeginCopy(int64_t offset, int64_t bytes, uint32_t thread);
  void EndCopy(int64_t offset, int64_t bytes, uint32_t thread);

  const uint32_t* writers() const { return writers_.data(); }
  const uint32_t* readers() const { return readers_.data(); }
  const uint32_t* epoch() const { return epoch_; }

 private:
  Conflict Read(size_t cell, uint32_t thread);
  Conflict Write(size_t cell, uint32_t thread, bool atomic);
  void Renumber();

  std::vector<uint32_t> writers_, readers_;
  int shift_ = 0;
  uint32_t epoch_[3] = {};  // by KILN_EMULATED_EPOCH_*
};

// The shadow of a kernel's written parameters, over the whole grid, by address. Blocks run one
// after the other. Lanes of a warp are ordered by the warp's barriers, too. If a block writes
// before a fence and an atomic access, another block sees the writes behind its own atomic access
// to the same place. The last block reads the others' results in this way.
class GlobalShadow {
 public:
  // `written`: see kiln_emulated_kernel. May throw bad_alloc.
  void Begin(std::span<const GpuSpan> parameters, uint64_t written, int64_t granule);
  void BeginBlock();
  void Fence() { fenced_ = true; }
  // May throw bad_alloc.
  Conflict Access(const std::byte* address, int64_t bytes, int kind, uint32_t block,
                  uint32_t barriers, uint32_t warp_barriers, uint32_t thread);

 private:
  // The thread, and the number of preceding barriers of its warp.
  struct Tag {
    uint64_t who = 0;
    uint32_t warp_barriers = 0;
  };
  struct Cell {
    Tag writer, reader;
  };
  // The cells of touched pages only: many kernels write a small part of large memory.
  static constexpr size_t kPageCells = 1024;
  struct Range {
    const std::byte *begin, *end;
    std::vector<std::unique_ptr<Cell[]>> pages;
    Cell& At(size_t cell);
  };
  bool IsOrdered(const Tag& tag, const Tag& now) const;
  void Meet(const std::byte* address, uint32_t block);

  std::vector<Range> ranges_;
  int shift_ = 0;
  bool fenced_ = false;  // the block that runs
  // The blocks with an access to a place after a fence, and the blocks that the current one has
  // synchronised with.
  std::map<const std::byte*, std::set<uint32_t>> fenced_at_;
  std::set<uint32_t> met_;
};

}  // namespace kiln::device

// How a nest runs on a CPU, as data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "target/target.h"

namespace kiln::kernel {

// The most rows and columns that are transposed in registers.
constexpr int kLargestSquare = 16;

// One stage's inner loops.
struct CpuStageSchedule {
  // The variable whose consecutive points make a vector: an outer one (then the same in all stages)
  // or an inner one of this stage; none for scalar code.
  VariableId vector_variable;
  // Independent vectors in flight along it. For a reduction along it they are independent
  // accumulators, combined as a fixed tree: accumulator i with i + n/2, and lanes alike.
  int unroll = 1;
  // One loop whose every vector has a mask, in place of one of whole vectors and another for the
  // rest: half the code, where the mask costs little beside the work.
  bool masked = false;
  // What is left of whole vectors goes in vectors of half the width, a quarter, and so on. Masked
  // stores are not forwarded to loads; a loop-carried value in memory waits for the cache at each
  // step.
  bool halving = false;
  // In strips: so many points of the last inner variable go together; a vector of columns takes all
  // of them before the next one does, in place of all columns of the strip each.
  int rows = 1;
  bool by_columns = false;
};

// Where vectors go along an outer variable and stages walk inner ones, as columns do whose rows are
// in order in memory: every stage is taken for a strip of columns row by row, with accumulators in
// memory, and not for a vector's columns from the first row to the last. So memory is read in
// pieces of a strip's width.
struct CpuStrips {
  int64_t width = 0;  // points of the vector variable, whole vectors; 0: no strips
  // Parameters of which later stages find the strip's points in scratch, without gaps: inputs as
  // the first stage has read them, outputs that wait for their last stage.
  struct Kept {
    ParamId param;
    int64_t offset = 0;  // bytes, in the item's piece
    bool operator==(const Kept&) const = default;
  };
  std::vector<Kept> kept;
  int64_t piece_bytes = 0;  // of scratch, for an item
};

// Memory that is asked for before it is wanted, a line at a time: the hardware sees no further than
// the end of a page, nor past the wait for a row's sum, and fetches lines that are only written
// when they are written.
struct CpuPrefetch {
  StageId stage;  // with whose vectors it goes
  ParamId param;
  Index index;  // of what the stage's point asks for
  bool write = false;
  bool operator==(const CpuPrefetch&) const = default;
};

// Where tests ask what piece of a concatenation a place of an outer variable is in: code of its own
// for each piece, or loops of its own where vectors go along the variable.
struct CpuCases {
  VariableId variable;
  std::vector<int64_t> begins;  // of the pieces, from 0 on
};

// A value that a walk over a row makes, and the next walk needs again at the same points: a row of
// it is kept on the stack, as it is in registers.
struct CpuKeptValue {
  StageId stage;
  NodeId node;
  StageId again_stage;
  NodeId again;
  bool operator==(const CpuKeptValue&) const = default;
};

struct CpuNestSchedule {
  int vector_width = 1;  // elements in a vector, the same for every type in the kernel
  IdVector<StageId, CpuStageSchedule> stages;
  // An outer variable, or none. With it a step takes vector_width points of this variable instead
  // of unrolling along the vector variable, so that what is contiguous along the one but not along
  // the other is moved in squares, which are transposed in registers. No stage has inner variables
  // then.
  VariableId tile_variable;

  // The last outer variable, or none: of a few points that outputs have side by side, for each
  // point of the vector variable, the one before. A step takes all of them, and their vectors are
  // interleaved where they are stored.
  VariableId interleaved;

  // Work items: the points of the first `parallel` outer variables, the last of these in blocks of
  // `block` points (a multiple of what a vector step takes, where it is the vector variable).
  int parallel = 0;
  int64_t block = 1;
  // With a tile variable: items are instead `block` points of the vector variable, at one point of
  // every other outer variable but the tile's, along all of which they go. So memory is read in
  // order, and written in pieces of a vector.
  bool panels = false;
  // Where one reduction is worth more than one item: its outermost reduction variable is cut into
  // chunks of `split` points (0: not cut), items are outer points times chunks, partial results go
  // to scratch (an argument after the kernel's parameters), and a call with begin == items, made
  // once after all others, combines them in order and runs the later stages.
  int64_t split = 0;
  int64_t chunks = 1;
  int64_t scratch_bytes = 0;

  // Items have blocks of whole strips then.
  CpuStrips strips;

  int64_t items = 1;
  // About how long one thread takes.
  double microseconds = 0;
  // The number of tasks worth their dispatch; 1 runs on the caller's thread.
  int64_t max_tasks = 1;
  // Stores that bypass the caches: worth it only for outputs far larger than them.
  bool nontemporal = false;
  std::vector<CpuPrefetch> prefetches;
  // Outputs whose rows are kept on the stack until the last stage writes them: earlier stages store
  // there, and all load from there.
  std::vector<ParamId> staged;
  std::vector<CpuKeptValue> kept;
  // Of one variable that vectors do not go along, and inside of each of its pieces of the vectors'
  // variable; of one of them, or none.
  std::vector<CpuCases> cases;
  // Software pipelining of rows: while the last stage has one row, the preceding stage has the
  // next, in the same loop. Memory is read and written all the time, and the latency of a row's
  // reduction is hidden by other rows' work.
  bool pipelined = false;

  std::string ToString() const;
};

// The bytes that a split reduction's partial results of one type and one chunk take in scratch:
// whole cache lines, which no two threads share.
int64_t CpuPartialBytes(ElementType type, int64_t points);

// The schedule depends on kernel and target alone, never on the number of threads: results must
// have the same bits however many there are. With `short_rows` strips may be of short rows
// (strips.h); a chain, which has a few at a time, wants none.
CpuNestSchedule ScheduleNest(const Kernel& kernel, const target::Cpu& cpu, bool short_rows = true);

}  // namespace kiln::kernel

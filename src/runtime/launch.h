// The work of the frame's table that needs no process around it: libkiln and programs compiled
// ahead of time share it. Uses nothing of the C++ library that is not in headers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/float_environment.h"
#include "frame/frame.h"

namespace kiln::runtime {

// The piece [begin, end) of [0, items) that is number `piece` of `pieces`: contiguous, sizes differ
// by one at most.
struct Range {
  int64_t begin, end;
};
inline Range PieceOf(int64_t items, int64_t pieces, int64_t piece) {
  int64_t size = items / pieces, rest = items % pieces;
  int64_t begin = piece * size + (piece < rest ? piece : rest);
  return {begin, begin + size + (piece < rest ? 1 : 0)};
}

// kiln_frame_table::launch.
int32_t Launch(const kiln_frame* frame, void** args, const kiln_kernel_fn* kernels,
               const int64_t* data, int64_t count);

// A parallel_for of a kernel in pieces.
struct KernelRun {
  const kiln_frame* frame;
  kiln_kernel_fn kernel;
  void* const* args;
  int64_t items, pieces, slice;
};
using RunItems = void (*)(const KernelRun& run, Range range);

// A range at once.
inline void RunRange(const KernelRun& run, Range range) {
  run.kernel(run.frame, run.args, range.begin, range.end);
}

// kiln_frame_table::parallel_for, where run_tasks(count, work, context) calls work(context, task)
// for each task on some threads.
template <RunItems kRunItems, typename RunTasks>
void ParallelFor(const kiln_frame* frame, kiln_kernel_fn kernel, void* const* args, int64_t items,
                 int64_t tasks, int64_t slice, const RunTasks& run_tasks) {
  if (items <= 0) return;
  const int64_t pieces = std::min({tasks, int64_t{frame->threads}, items});
  KernelRun run{frame, kernel, args, items, pieces, slice};
  if (pieces <= 1) {
    kRunItems(run, {0, items});
    return;
  }
  auto work = [](void* context, int64_t task) {
    const KernelRun& r = *static_cast<const KernelRun*>(context);
    DefaultFloatEnvironment environment;
    kRunItems(r, PieceOf(r.items, r.pieces, task));
  };
  run_tasks(pieces, work, &run);
}

// Fails the run because it is cancelled.
int32_t FailCancelled(const kiln_frame* frame);

}  // namespace kiln::runtime

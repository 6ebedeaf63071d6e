// The host's side of the frame: what stands behind its table of functions.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "base/status.h"
#include "base/trace.h"
#include "frame/frame.h"
#include "program/program.h"
#include "runtime/thread_pool.h"
#include "tensor/probes.h"

namespace kiln::runtime {

class ProgramCalls;

// One run of a program; frame->host points to it.
struct HostRun {
  ThreadPool* pool = nullptr;
  const program::Program* program = nullptr;
  const ProgramCalls* calls = nullptr;  // the program's
  TraceSink* trace = nullptr;
  Probes* probes = nullptr;  // what the run's calls keep; null: they cannot
  // Written by the table's `fail` at most once, with the mutex held.
  std::mutex mutex;
  int32_t code = 0;
  std::string message;
  // Of the step that trace_begin announced last; steps do not nest.
  // Of the steps that are being traced, each inside the one before; deeper ones are left out.
  int64_t step_starts_ns[16] = {};
  size_t depth = 0;
};

// The one table that all runs share.
const kiln_frame_table& HostTable();

// The failure that a run has left, or OK for code 0.
Status StatusOf(const HostRun& run, int32_t code);

}  // namespace kiln::runtime

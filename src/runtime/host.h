// The host's side of the frame: the implementation of its table of functions.
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
  // The stack of traced steps, each inside the preceding one; deeper ones are omitted.
  int64_t step_starts_ns[16] = {};
  size_t depth = 0;
};

// The table shared by all runs.
const kiln_frame_table& HostTable();

// The failure of a run, or OK for code 0.
Status StatusOf(const HostRun& run, int32_t code);

}  // namespace kiln::runtime

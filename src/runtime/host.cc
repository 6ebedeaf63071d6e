#include "runtime/host.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <mutex>
#include <string_view>

#include "base/strings.h"
#include "runtime/custom_calls.h"
#include "runtime/launch.h"
#include "runtime/lib/parallel.h"

namespace kiln::runtime {
namespace {

HostRun& RunOf(const kiln_frame* frame) { return *static_cast<HostRun*>(frame->host); }

// The items between two polls, after the first one.
constexpr auto kLeastBetweenLooks = std::chrono::milliseconds(1);
constexpr auto kMostBetweenLooks = std::chrono::milliseconds(8);

// Ends early where the run is cancelled.
void RunPolled(const KernelRun& run, Range range) {
  if (!run.frame->cancel || run.slice == 0) {
    RunRange(run, range);
    return;
  }
  int64_t slice = run.slice;
  while (true) {
    if (slice >= range.end - range.begin) {
      RunRange(run, range);
      return;
    }
    const int64_t end = range.begin + slice;
    auto start = std::chrono::steady_clock::now();
    RunRange(run, {range.begin, end});
    auto took = std::chrono::steady_clock::now() - start;
    if (took < kLeastBetweenLooks) slice *= 2;
    if (took > kMostBetweenLooks) slice = std::max<int64_t>(slice / 2, 1);
    if (lib::IsCancelled(run.frame)) {
      FailCancelled(run.frame);
      return;
    }
    range.begin = end;
  }
}

void RunParallel(const kiln_frame* frame, kiln_kernel_fn kernel, void* const* args, int64_t items,
                 int64_t tasks, int64_t slice) {
  ParallelFor<RunPolled>(frame, kernel, args, items, tasks, slice,
                         [frame](int64_t count, void (*work)(void*, int64_t), void* context) {
                           RunOf(frame).pool->Run(count, work, context);
                         });
}

int32_t Fail(const kiln_frame* frame, int32_t code, const char* message, int64_t size) {
  HostRun& run = RunOf(frame);
  std::lock_guard lock(run.mutex);
  if (run.code == 0) {
    run.code = code;
    run.message.assign(message, static_cast<size_t>(size));
  }
  return code;
}

// `config` was parsed when the program was loaded.
int32_t Call(const kiln_frame* frame, int32_t step, void* const* args, const void* config,
             int64_t config_size) {
  const HostRun& run = RunOf(frame);
  Status status = run.calls->Run(*run.program, program::LaunchId(step), frame, args);
  if (status.ok()) return 0;
  return Fail(frame, static_cast<int32_t>(status.code()), status.message().data(),
              static_cast<int64_t>(status.message().size()));
}

void TraceBegin(const kiln_frame* frame, int32_t step) {
  HostRun& run = RunOf(frame);
  if (run.depth < std::size(run.step_starts_ns)) run.step_starts_ns[run.depth] = TraceSink::Now();
  ++run.depth;
}

void TraceEnd(const kiln_frame* frame, int32_t step) {
  HostRun& run = RunOf(frame);
  int64_t now = TraceSink::Now();
  if (--run.depth >= std::size(run.step_starts_ns)) return;
  int64_t start = run.step_starts_ns[run.depth];
  const program::LaunchInfo& launch = run.program->launches[program::LaunchId(step)];
  TraceEvent event;
  event.name = launch.kernel_name;
  event.category = launch.is_call ? "call" : "kernel";
  event.start_ns = start;
  event.duration_ns = now - start;
  event.lane = TraceSink::LaneOfThisThread();
  event.args = {
      {"ops", Join(launch.op_names, ", ")}, {"bytes", launch.bytes}, {"flops", launch.flops}};
  run.trace->Add(std::move(event));
}

constexpr kiln_frame_table kTable = {
    .parallel_for = RunParallel,
    .call = Call,
    .trace_begin = TraceBegin,
    .trace_end = TraceEnd,
    .fail = Fail,
    .launch = Launch,
};

}  // namespace

const kiln_frame_table& HostTable() { return kTable; }

Status StatusOf(const HostRun& run, int32_t code) {
  if (code == 0 && run.code == 0) return OkStatus();
  Code canonical = static_cast<Code>(run.code != 0 ? run.code : code);
  return Status(canonical, run.message.empty() ? "the program failed" : run.message);
}

}  // namespace kiln::runtime

#include "runtime/host.h"

#include <algorithm>
#include <iterator>

#include "base/float_environment.h"
#include "base/strings.h"
#include "runtime/calls.h"

namespace kiln::runtime {
namespace {

HostRun& RunOf(const kiln_frame* frame) { return *static_cast<HostRun*>(frame->host); }

struct KernelRun {
  const kiln_frame* frame;
  kiln_kernel_fn kernel;
  void* const* args;
  int64_t items, tasks;
};

void ParallelFor(const kiln_frame* frame, kiln_kernel_fn kernel, void* const* args, int64_t items,
                 int64_t tasks) {
  int64_t pieces = std::min<int64_t>({tasks, frame->threads, items});
  if (pieces <= 1) {
    if (items > 0) kernel(frame, args, 0, items);
    return;
  }
  KernelRun run{frame, kernel, args, items, pieces};
  RunOf(frame).pool->Run(
      pieces,
      [](void* context, int64_t task) {
        const KernelRun& r = *static_cast<KernelRun*>(context);
        DefaultFloatEnvironment environment;
        Range range = PieceOf(r.items, r.tasks, task);
        r.kernel(r.frame, r.args, range.begin, range.end);
      },
      &run);
}

int32_t Fail(const kiln_frame* frame, int32_t code, const char* message, int64_t size) {
  HostRun& run = RunOf(frame);
  if (run.code == 0) {
    run.code = code;
    run.message.assign(message, static_cast<size_t>(size));
  }
  return code;
}

// What `config` says has been read when the program was loaded.
int32_t Call(const kiln_frame* frame, int32_t step, void* const* args, const void* config,
             int64_t config_size) {
  const HostRun& run = RunOf(frame);
  Status status = run.calls->Run(*run.program, step, frame, args);
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
  const plan::LaunchInfo& launch = run.program->launches[step];
  TraceEvent event;
  event.name = launch.kernel_name;
  event.category = launch.is_call ? "call" : "kernel";
  event.start_ns = start;
  event.duration_ns = now - start;
  event.lane = TraceSink::LaneOfThisThread();
  event.args = {{"ops", Join(launch.op_names, ", ")},
                {"bytes", Cat(launch.bytes)},
                {"flops", Cat(launch.flops)}};
  run.trace->Add(std::move(event));
}

constexpr kiln_frame_table kTable = {
    .parallel_for = ParallelFor,
    .call = Call,
    .trace_begin = TraceBegin,
    .trace_end = TraceEnd,
    .fail = Fail,
};

}  // namespace

const kiln_frame_table& HostTable() { return kTable; }

Status StatusOf(const HostRun& run, int32_t code) {
  if (code == 0 && run.code == 0) return OkStatus();
  Code canonical = static_cast<Code>(run.code != 0 ? run.code : code);
  return Status(canonical, run.message.empty() ? "the program failed" : run.message);
}

}  // namespace kiln::runtime

#include "runtime/host.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <mutex>
#include <string_view>

#include "base/float_environment.h"
#include "base/strings.h"
#include "runtime/custom_calls.h"
#include "runtime/lib/parallel.h"

namespace kiln::runtime {
namespace {

HostRun& RunOf(const kiln_frame* frame) { return *static_cast<HostRun*>(frame->host); }

struct KernelRun {
  const kiln_frame* frame;
  kiln_kernel_fn kernel;
  void* const* args;
  int64_t items, tasks;
  int64_t slice;  // after so many items it is first asked whether the run is to end
};

// Tasks take some ten microseconds, so these some milliseconds.
constexpr double kTasksPerSlice = 256;
// The items between two polls, after the first one.
constexpr auto kLeastBetweenLooks = std::chrono::milliseconds(1);
constexpr auto kMostBetweenLooks = std::chrono::milliseconds(8);

int32_t FailCancelled(const kiln_frame* frame) {
  constexpr std::string_view kMessage = "the execution was cancelled";
  return frame->table->fail(frame, static_cast<int32_t>(Code::kCancelled), kMessage.data(),
                            static_cast<int64_t>(kMessage.size()));
}

void RunItems(const KernelRun& run, Range range) {
  if (!run.frame->cancel) {
    run.kernel(run.frame, run.args, range.begin, range.end);
    return;
  }
  int64_t slice = run.slice;
  while (true) {
    int64_t end = slice < range.end - range.begin ? range.begin + slice : range.end;
    if (end == range.end) {
      run.kernel(run.frame, run.args, range.begin, end);
      return;
    }
    auto start = std::chrono::steady_clock::now();
    run.kernel(run.frame, run.args, range.begin, end);
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

void ParallelFor(const kiln_frame* frame, kiln_kernel_fn kernel, void* const* args, int64_t items,
                 int64_t tasks) {
  if (items <= 0) return;
  int64_t pieces = std::min<int64_t>({tasks, frame->threads, items});
  // With as few items as tasks, an item may take any time.
  double slice =
      tasks < items ? static_cast<double>(items) * kTasksPerSlice / static_cast<double>(tasks) : 1;
  KernelRun run{frame,  kernel,
                args,   items,
                pieces, static_cast<int64_t>(std::clamp(slice, 1.0, static_cast<double>(items)))};
  if (pieces <= 1) {
    RunItems(run, {0, items});
    return;
  }
  RunOf(frame).pool->Run(
      pieces,
      [](void* context, int64_t task) {
        const KernelRun& r = *static_cast<KernelRun*>(context);
        DefaultFloatEnvironment environment;
        RunItems(r, PieceOf(r.items, r.tasks, task));
      },
      &run);
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

int32_t Launch(const kiln_frame* frame, void** args, const kiln_kernel_fn* kernels,
               const int64_t* data, int64_t count) {
  for (int64_t k = 0; k < count; ++k) {
    const int64_t *operand = data + KILN_LAUNCH_FIELDS, operands = data[KILN_LAUNCH_OPERANDS];
    for (int64_t i = 0; i < operands; ++i, operand += 2) {
      args[i] = static_cast<std::byte*>(frame->buffers[operand[0]]) + operand[1];
    }
    const auto step = static_cast<int32_t>(data[KILN_LAUNCH_STEP]);
    const int64_t items = data[KILN_LAUNCH_ITEMS], tasks = data[KILN_LAUNCH_TASKS];
    const bool is_traced = frame->trace && step >= 0;
    if (is_traced) frame->table->trace_begin(frame, step);
    if (tasks > 1) {
      frame->table->parallel_for(frame, kernels[k], args, items, tasks);
    } else if (items > 0) {
      kernels[k](frame, args, 0, items);
    }
    if (data[KILN_LAUNCH_FINISH] != 0) kernels[k](frame, args, items, items + 1);
    if (is_traced) frame->table->trace_end(frame, step);
    if (lib::IsCancelled(frame)) return FailCancelled(frame);
    data = operand;
  }
  return 0;
}

constexpr kiln_frame_table kTable = {
    .parallel_for = ParallelFor,
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

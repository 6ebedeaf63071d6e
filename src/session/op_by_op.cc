#include "session/op_by_op.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <span>
#include <utility>

#include "base/exception.h"
#include "base/interrupt.h"
#include "base/overloaded.h"
#include "base/strings.h"
#include "base/trace.h"
#include "client/program_cache.h"
#include "compiler/cache_key.h"
#include "compiler/compile_step.h"
#include "compiler/lower.h"
#include "compiler/waves.h"
#include "ir/analysis/frozen.h"
#include "passes/pipelines.h"
#include "program/binding.h"
#include "program/steps.h"
#include "runtime/constants.h"
#include "runtime/thread_pool.h"

namespace kiln::session {
namespace {

// What a run needs.
struct OpByOpProgram {
  OpByOpProgram(runtime::Device& d, runtime::ThreadPool& p) : device(d), pool(p) {}
  OpByOpProgram(const OpByOpProgram&) = delete;
  OpByOpProgram& operator=(const OpByOpProgram&) = delete;

  runtime::Device& device;
  runtime::ThreadPool& pool;
  program::Program program;
  IdVector<program::LaunchId, std::shared_ptr<const CompiledOp>> ops;
  compiler::Waves waves;  // of the program's steps, for the pool's threads
  std::unique_ptr<runtime::ArenaCache> arenas;
  runtime::LoadedConstants constants{device, program, device.has_host_memory()};
  RunInfo info;
};

// One run, op by op.
class Replay {
 public:
  Replay(const OpByOpProgram& prepared, const program::Addresses& addresses,
         const runtime::RunOptions& options)
      : prepared_(prepared),
        addresses_(addresses),
        options_(options),
        threads_(options.threads > 0 ? std::min(options.threads, prepared.pool.threads())
                                     : prepared.pool.threads()),
        has_waves_(threads_ > 1 && !prepared.waves.waves.empty()) {}

  // Waits for all started ops, whatever happens.
  Status Run(const program::Steps& steps) {
    Status status = Walk(steps);
    // The first failure is the cause of the others.
    for (const auto& completion : started_) {
      Status end = completion->Wait();
      if (status.ok()) status = end;
    }
    return status;
  }

 private:
  Status Walk(const program::Steps& steps) {
    for (size_t s = 0; s < steps.size(); ++s) {
      const auto* launch = std::get_if<program::Launch>(&steps[s].what);
      if (!launch) {
        KILN_RETURN_IF_ERROR(std::visit([this](const auto& w) { return Walk(w); }, steps[s].what));
        continue;
      }
      const compiler::Wave* wave = has_waves_ ? WaveFrom(*launch) : nullptr;
      if (!wave) {
        KILN_RETURN_IF_ERROR(Walk(*launch));
        continue;
      }
      const auto launches = static_cast<size_t>(wave->launches());
      KILN_RETURN_IF_ERROR(RunWave(*wave, std::span(steps).subspan(s, launches)));
      s += launches - 1;
    }
    return OkStatus();
  }

  const compiler::Wave* WaveFrom(const program::Launch& launch) const {
    const int32_t wave = prepared_.waves.begun_by[launch.id];
    return wave < 0 ? nullptr : &prepared_.waves.waves[static_cast<size_t>(wave)];
  }

  // The state of a wave, shared by its threads.
  struct WaveRun {
    const Replay& replay;
    const compiler::Wave& wave;
    std::span<const program::Step> launches;
    std::atomic<size_t> next_batch{0};
    // Launches behind a failed one are skipped. Those before it are not, since the first failure in
    // the order of steps is reported.
    std::atomic<size_t> first_failed{std::numeric_limits<size_t>::max()};
    std::mutex mutex;
    Status status;  // of the first failed one, under the mutex
  };

  Status RunWave(const compiler::Wave& wave, std::span<const program::Step> launches) const {
    if (options_.begun) *options_.begun = true;
    WaveRun run{.replay = *this, .wave = wave, .launches = launches};
    prepared_.pool.Run(
        std::min<int64_t>(threads_, static_cast<int64_t>(wave.ends.size())),
        [](void* context, int64_t) { TakeBatches(*static_cast<WaveRun*>(context)); }, &run);
    return std::move(run.status);
  }

  static void TakeBatches(WaveRun& run) noexcept {
    const std::vector<int32_t>& ends = run.wave.ends;
    for (size_t b = run.next_batch++; b < ends.size(); b = run.next_batch++) {
      const auto end = static_cast<size_t>(ends[b]);
      for (size_t i = b == 0 ? 0 : static_cast<size_t>(ends[b - 1]); i < end; ++i) {
        if (i > run.first_failed) return;
        Status status = Try(
            [&] { return run.replay.RunAlone(std::get<program::Launch>(run.launches[i].what)); });
        if (status.ok()) continue;
        std::lock_guard lock(run.mutex);
        if (i >= run.first_failed) return;
        run.first_failed = i;
        run.status = std::move(status);
        return;
      }
    }
  }

  // To its end, on this thread only.
  Status RunAlone(const program::Launch& launch) const {
    runtime::RunOptions options = options_;
    options.threads = 1;
    options.begun = nullptr;  // set for the whole wave
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<runtime::Completion> completion,
                          StartOp(launch.id, launch.args, options));
    return completion ? completion->Wait() : OkStatus();
  }

  Status Walk(const program::Launch& launch) { return RunOp(launch.id, launch.args); }
  Status Walk(const program::HostCall& call) { return RunOp(call.id, call.args); }
  Status Walk(const program::Copy& copy) {
    if (options_.begun) *options_.begun = true;
    return prepared_.device.Copy(At(copy.to), At(copy.from), copy.from.bytes);
  }
  Status Walk(const program::While& loop) {
    while (true) {
      KILN_RETURN_IF_ERROR(Interrupt(options_.cancel).Check());
      KILN_RETURN_IF_ERROR(Walk(loop.condition));
      std::byte goes_on{0};
      KILN_RETURN_IF_ERROR(prepared_.device.CopyToHost(&goes_on, At(loop.predicate), 1));
      // The ops awaited by that.
      for (const auto& completion : started_) KILN_RETURN_IF_ERROR(completion->Wait());
      started_.clear();
      if (goes_on == std::byte{0}) return OkStatus();
      KILN_RETURN_IF_ERROR(Walk(loop.body));
    }
  }
  Status Walk(const program::Conditional& conditional) {
    std::byte value[sizeof(int32_t)];
    const program::Slice& index = conditional.index;
    KILN_RETURN_IF_ERROR(prepared_.device.CopyToHost(value, At(index), index.bytes));
    size_t branch = program::BranchAt(value, conditional.by_predicate, conditional.branches.size());
    return Walk(conditional.branches[branch]);
  }

  std::byte* At(const program::Slice& slice) const {
    return addresses_[slice.allocation] + slice.offset;
  }

  Status RunOp(program::LaunchId launch, const std::vector<program::Slice>& slices) {
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<runtime::Completion> completion,
                          StartOp(launch, slices, options_));
    if (completion) started_.push_back(std::move(completion));
    return OkStatus();
  }

  // Null if it has ended.
  Result<std::unique_ptr<runtime::Completion>> StartOp(program::LaunchId launch,
                                                       const std::vector<program::Slice>& slices,
                                                       const runtime::RunOptions& options) const {
    constexpr size_t kInline = 64;
    const void* inline_args[kInline];
    std::vector<const void*> many(slices.size() > kInline ? slices.size() : 0);
    std::span<const void*> args(many.empty() ? inline_args : many.data(), slices.size());
    for (size_t i = 0; i < slices.size(); ++i) args[i] = At(slices[i]);
    runtime::LoadedExecutable& op = *prepared_.ops[launch]->executable;
    return options.trace ? StartTraced(launch, op, args, options) : op.Start(args, {}, options);
  }

  Result<std::unique_ptr<runtime::Completion>> StartTraced(
      program::LaunchId launch, runtime::LoadedExecutable& op, std::span<const void* const> args,
      const runtime::RunOptions& options) const {
    runtime::RunOptions quiet = options;
    // A GPU has lanes of its own; the bar here is the host's submission time.
    const bool shows_runs = prepared_.device.shows_runs();
    if (!shows_runs) quiet.trace = nullptr;
    const int64_t start = TraceSink::Now();
    Result<std::unique_ptr<runtime::Completion>> completion = op.Start(args, {}, quiet);
    if (!completion.ok()) return completion;
    // In a timeline an op ends before the next one begins.
    if (*completion && !shows_runs) {
      KILN_RETURN_IF_ERROR(std::exchange(*completion, nullptr)->Wait());
    }
    const program::LaunchInfo& info = prepared_.program.launches[launch];
    options.trace->Add(
        {info.kernel_name,
         info.is_call ? "call" : "kernel",
         start,
         TraceSink::Now() - start,
         TraceSink::LaneOfThisThread(),
         {{"ops", Join(info.op_names, ", ")}, {"bytes", info.bytes}, {"flops", info.flops}}});
    return completion;
  }

  const OpByOpProgram& prepared_;
  const program::Addresses& addresses_;
  const runtime::RunOptions& options_;
  const int threads_;
  const bool has_waves_;
  // Ops that may still run.
  std::vector<std::unique_ptr<runtime::Completion>> started_;
};

}  // namespace

class OpByOpCompiler::Prepared final : public OpByOpExecutable {
 public:
  Prepared(std::string name, client::Device& device)
      : OpByOpExecutable(std::move(name), device), run_(device.runtime(), device.pool()) {}

  OpByOpProgram& run() { return run_; }
  // After the program is complete.
  void Complete() {
    calls_users_functions_ =
        std::ranges::any_of(run_.ops, [](const std::shared_ptr<const CompiledOp>& op) {
          return op && op->executable->calls_users_functions();
        });
    is_straight_ = program::IsStraight(run_.program.steps);
  }

  const RunInfo& info() const override { return run_.info; }
  const program::Signature& signature() const override { return run_.program.signature; }
  bool calls_users_functions() const override { return calls_users_functions_; }
  bool is_straight() const override { return is_straight_; }
  Result<std::unique_ptr<runtime::Completion>> Start(
      std::span<const void* const> arguments, std::span<void* const> results,
      const runtime::RunOptions& options) const override {
    const program::Program& p = run_.program;
    program::Addresses addresses(p.allocations.size());
    std::byte* arena = nullptr;
    if (p.arena_bytes > 0) {
      KILN_ASSIGN_OR_RETURN(arena, run_.arenas->Acquire());
    }
    program::BindAllocations(p, arguments, results, run_.constants.addresses(), arena,
                             addresses.data());
    Status status = CopyAliases(arguments, results);
    if (status.ok()) status = Replay(run_, addresses, options).Run(p.steps);
    if (arena) run_.arenas->Release(arena);
    KILN_RETURN_IF_ERROR(status);
    return std::unique_ptr<runtime::Completion>();
  }

 private:
  // An argument that is not donated is copied to the result's memory.
  Status CopyAliases(std::span<const void* const> arguments, std::span<void* const> results) const {
    const program::Signature& signature = run_.program.signature;
    for (size_t r = 0; r < signature.aliases.size(); ++r) {
      if (signature.aliases[r] < 0) continue;
      const void* argument = arguments[static_cast<size_t>(signature.aliases[r])];
      const int64_t bytes = signature.results[r].byte_size();
      if (results[r] == argument || bytes == 0) continue;
      KILN_RETURN_IF_ERROR(run_.device.Copy(static_cast<std::byte*>(results[r]),
                                            static_cast<const std::byte*>(argument), bytes));
    }
    return OkStatus();
  }

  OpByOpProgram run_;
  bool calls_users_functions_ = false, is_straight_ = false;
};

OpByOpCompiler::OpByOpCompiler(client::Device& device)
    : device_(device), backend_(compiler::BackendFor(device.runtime().target())) {}

Result<std::unique_ptr<OpByOpCompiler>> OpByOpCompiler::Create(client::Device& device) {
  std::unique_ptr<OpByOpCompiler> made(new OpByOpCompiler(device));
  if (!made->backend_->runs_kernels()) {
    return Unimplemented("sessions on the device ", device.name());
  }
  return made;
}

Result<Ref<const OpByOpExecutable>> OpByOpCompiler::Prepare(std::unique_ptr<ir::Module> module) {
  const int64_t start = TraceSink::Now();
  auto prepared = MakeRef<Prepared>(module->name(), device_);
  passes::PassContext context;
  context.target = &device_.runtime().target();
  ir::MarkFrozen(*module, {});  // sessions bind no arguments
  KILN_RETURN_IF_ERROR(passes::RunPipeline("op_by_op", passes::OpByOpPipeline(), *module, context));
  KILN_ASSIGN_OR_RETURN(compiler::Lowered lowered,
                        compiler::Lower(*module, *backend_, *context.fusions));
  OpByOpProgram& run = prepared->run();
  run.waves = backend_->FindWaves(lowered, run.pool.threads());
  run.ops.resize(lowered.program.launches.size());
  KILN_RETURN_IF_ERROR(CompileSteps(*prepared, lowered, lowered.program.prologue));
  KILN_RETURN_IF_ERROR(CompileSteps(*prepared, lowered, lowered.program.steps));
  run.program = std::move(lowered.program);
  const program::Program& p = run.program;
  run.arenas = std::make_unique<runtime::ArenaCache>(run.device, p.arena_bytes);
  KILN_RETURN_IF_ERROR(run.constants.Load([&run](std::byte* to, const void* from, int64_t bytes) {
    return from ? run.device.CopyFromHost(to, from, bytes) : run.device.FillZero(to, bytes);
  }));
  KILN_RETURN_IF_ERROR(Replay(run, run.constants.addresses(), {}).Run(p.prologue));
  run.constants.FreeUnused();
  run.info.kernels = program::CountKernels(p.steps);
  run.info.temporary_bytes = p.arena_bytes;
  run.info.compile_microseconds = (TraceSink::Now() - start) / 1000;
  prepared->Complete();
  return Ref<const OpByOpExecutable>::Share(prepared.get());
}

Status OpByOpCompiler::CompileSteps(Prepared& prepared, const codegen::LoweredProgram& lowered,
                                    const program::Steps& steps) {
  Status status;
  auto set = [&](program::LaunchId id, Result<std::shared_ptr<const CompiledOp>> op) {
    status = op.status();
    if (status.ok()) prepared.run().ops[id] = *std::move(op);
  };
  program::ForEachStep(steps, [&](const program::Step& step, bool) {
    if (!status.ok()) return;
    std::visit(Overloaded{
                   [&](const program::Launch& launch) {
                     set(launch.id, Compile(lowered.KernelOf(launch), launch.args));
                   },
                   [&](const program::HostCall& call) {
                     // Calls are distinct in messages, and cost nothing to compile: they are never
                     // shared.
                     const program::LaunchInfo& info = lowered.program.launches[call.id];
                     set(call.id, Load("", call.target, [&] {
                           return compiler::CompileHostCall(call, info, *backend_);
                         }));
                   },
                   [](const program::Copy&) {},
                   [](const program::While&) {},
                   [](const program::Conditional&) {},
               },
               step.what);
  });
  return status;
}

Result<std::shared_ptr<const CompiledOp>> OpByOpCompiler::Load(
    const std::string& key, const std::string& name,
    const std::function<Result<program::Artefact>()>& compile) {
  KILN_ASSIGN_OR_RETURN(client::LoadedProgram program,
                        client::LoadThroughCache(device_, key, name, false, nullptr, compile));
  auto op = std::make_shared<CompiledOp>();
  op->executable = std::move(program.executable);
  return std::shared_ptr<const CompiledOp>(std::move(op));
}

Result<std::shared_ptr<const CompiledOp>> OpByOpCompiler::Compile(
    const kernel::ScheduledKernel& kernel, const std::vector<program::Slice>& args) {
  std::string text = compiler::KernelText(kernel);
  if (std::shared_ptr<const CompiledOp> found = cache_.Find(text)) return found;
  const std::string key =
      device_.client().cache() ? compiler::CacheKeyOfLaunch(text, args, backend_->target()) : "";
  KILN_ASSIGN_OR_RETURN(std::shared_ptr<const CompiledOp> op, Load(key, kernel.kernel.name, [&] {
                          return compiler::CompileLaunch(kernel, text, args, *backend_);
                        }));
  cache_.Insert(std::move(text), op);
  return op;
}

}  // namespace kiln::session

#include "session/op_by_op.h"

#include <algorithm>

#include "base/interrupt.h"
#include "base/overloaded.h"
#include "base/strings.h"
#include "base/trace.h"
#include "compiler/compile_step.h"
#include "compiler/lower.h"
#include "passes/pipelines.h"
#include "program/binding.h"
#include "program/steps.h"
#include "runtime/constants.h"

namespace kiln::session {
namespace {

// What a run needs.
struct OpByOpProgram {
  explicit OpByOpProgram(runtime::Device& d) : device(d) {}
  OpByOpProgram(const OpByOpProgram&) = delete;
  OpByOpProgram& operator=(const OpByOpProgram&) = delete;

  runtime::Device& device;
  program::Program program;
  IdVector<program::LaunchId, std::shared_ptr<const CompiledOp>> ops;
  std::unique_ptr<runtime::ArenaCache> arenas;
  runtime::LoadedConstants constants{device, program};
  RunInfo info;
};

// One run, op by op.
class Replay {
 public:
  Replay(const OpByOpProgram& prepared, const program::Addresses& addresses,
         const runtime::RunOptions& options)
      : prepared_(prepared), addresses_(addresses), options_(options) {}

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
    for (const program::Step& step : steps) {
      KILN_RETURN_IF_ERROR(std::visit([this](const auto& s) { return Walk(s); }, step.what));
    }
    return OkStatus();
  }

  Status Walk(const program::Launch& launch) { return RunOp(launch.id, launch.args); }
  Status Walk(const program::HostCall& call) { return RunOp(call.id, call.args); }
  Status Walk(const program::Copy& copy) {
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
    constexpr size_t kInline = 64;
    const void* inline_args[kInline];
    std::vector<const void*> many(slices.size() > kInline ? slices.size() : 0);
    std::span<const void*> args(many.empty() ? inline_args : many.data(), slices.size());
    for (size_t i = 0; i < slices.size(); ++i) args[i] = At(slices[i]);
    runtime::RunOptions quiet = options_;
    // A GPU has lanes of its own; the bar here is the host's submission time.
    const bool shows_runs = prepared_.device.shows_runs();
    if (!shows_runs) quiet.trace = nullptr;
    int64_t start = options_.trace ? TraceSink::Now() : 0;
    Result<std::unique_ptr<runtime::Completion>> completion =
        prepared_.ops[launch]->executable->Start(args, {}, quiet);
    if (!completion.ok()) return completion.status();
    if (*completion) {
      // In a timeline an op ends before the next one begins.
      if (options_.trace && !shows_runs) KILN_RETURN_IF_ERROR((*completion)->Wait());
      started_.push_back(*std::move(completion));
    }
    if (options_.trace) {
      const program::LaunchInfo& info = prepared_.program.launches[launch];
      options_.trace->Add(
          {info.kernel_name,
           info.is_call ? "call" : "kernel",
           start,
           TraceSink::Now() - start,
           TraceSink::LaneOfThisThread(),
           {{"ops", Join(info.op_names, ", ")}, {"bytes", info.bytes}, {"flops", info.flops}}});
    }
    return OkStatus();
  }

  const OpByOpProgram& prepared_;
  const program::Addresses& addresses_;
  const runtime::RunOptions& options_;
  // Ops that may still run.
  std::vector<std::unique_ptr<runtime::Completion>> started_;
};

}  // namespace

class OpByOpCompiler::Prepared final : public OpByOpExecutable {
 public:
  Prepared(std::string name, client::Device& device)
      : OpByOpExecutable(std::move(name), device), run_(device.runtime()) {}

  OpByOpProgram& run() { return run_; }
  // After the program is complete.
  void Complete() {
    calls_users_functions_ =
        std::ranges::any_of(run_.ops, [](const std::shared_ptr<const CompiledOp>& op) {
          return op && op->executable->calls_users_functions();
        });
  }

  const RunInfo& info() const override { return run_.info; }
  const program::Signature& signature() const override { return run_.program.signature; }
  bool calls_users_functions() const override { return calls_users_functions_; }
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
    Status status = Replay(run_, addresses, options).Run(p.steps);
    if (arena) run_.arenas->Release(arena);
    KILN_RETURN_IF_ERROR(status);
    return std::unique_ptr<runtime::Completion>();
  }

 private:
  OpByOpProgram run_;
  bool calls_users_functions_ = false;
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
  KILN_RETURN_IF_ERROR(passes::RunPipeline("op_by_op", passes::OpByOpPipeline(), *module, context));
  KILN_ASSIGN_OR_RETURN(compiler::Lowered lowered,
                        compiler::Lower(*module, *backend_, *context.fusions));
  OpByOpProgram& run = prepared->run();
  run.ops.resize(lowered.program.launches.size());
  KILN_RETURN_IF_ERROR(CompileSteps(*prepared, lowered, lowered.program.prologue));
  KILN_RETURN_IF_ERROR(CompileSteps(*prepared, lowered, lowered.program.steps));
  run.program = std::move(lowered.program);
  const program::Program& p = run.program;
  run.arenas = std::make_unique<runtime::ArenaCache>(run.device, p.arena_bytes);
  KILN_RETURN_IF_ERROR(run.constants.Load([&run](std::byte* to, const void* from, int64_t bytes) {
    return run.device.CopyFromHost(to, from, bytes);
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
                     set(call.id, Load(compiler::CompileHostCall(call, info, *backend_)));
                   },
                   [](const program::Copy&) {},
                   [](const program::While&) {},
                   [](const program::Conditional&) {},
               },
               step.what);
  });
  return status;
}

Result<std::shared_ptr<const CompiledOp>> OpByOpCompiler::Load(Result<program::Artefact> artefact) {
  KILN_RETURN_IF_ERROR(artefact.status());
  auto op = std::make_shared<CompiledOp>();
  KILN_ASSIGN_OR_RETURN(op->executable, device_.runtime().Load(*std::move(artefact)));
  return std::shared_ptr<const CompiledOp>(std::move(op));
}

Result<std::shared_ptr<const CompiledOp>> OpByOpCompiler::Compile(
    const kernel::ScheduledKernel& kernel, const std::vector<program::Slice>& args) {
  std::string text = compiler::KernelText(kernel);
  if (std::shared_ptr<const CompiledOp> found = cache_.Find(text)) return found;
  KILN_ASSIGN_OR_RETURN(std::shared_ptr<const CompiledOp> op,
                        Load(compiler::CompileLaunch(kernel, text, args, *backend_)));
  cache_.Insert(std::move(text), op);
  return op;
}

}  // namespace kiln::session

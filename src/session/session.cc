#include "session/session.h"

#include <algorithm>
#include <chrono>

#include "base/overloaded.h"
#include "base/strings.h"
#include "compiler/compile_step.h"
#include "compiler/lower.h"
#include "passes/pipelines.h"
#include "program/binding.h"
#include "program/steps.h"
#include "runtime/constants.h"
#include "session/subgraph.h"

namespace kiln::session {

// One op's kernel, as a program of a single launch.
struct Session::Op {
  std::unique_ptr<runtime::LoadedExecutable> executable;
};

struct Session::Prepared {
  explicit Prepared(runtime::Device& d) : device(d) {}
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  runtime::Device& device;
  program::Program program;
  IdVector<program::LaunchId, std::shared_ptr<Op>> ops;
  std::unique_ptr<runtime::ArenaCache> arenas;
  runtime::LoadedConstants constants{device, program};
  RunInfo info;
};

// One run, op by op.
class Session::Replay {
 public:
  Replay(const Prepared& prepared, const program::Addresses& addresses,
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
  Status Walk(const program::Call& call) { return RunOp(call.id, call.args); }
  Status Walk(const program::Copy& copy) {
    return prepared_.device.Copy(At(copy.to), At(copy.from), copy.from.bytes);
  }
  Status Walk(const program::While& loop) {
    while (true) {
      if (options_.cancel && *options_.cancel != 0) return Cancelled("the run was cancelled");
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

  const Prepared& prepared_;
  const program::Addresses& addresses_;
  const runtime::RunOptions& options_;
  // Ops that may still run.
  std::vector<std::unique_ptr<runtime::Completion>> started_;
};

Session::Session(const ir::Module& module, runtime::Device& device)
    : module_(module.Clone()), device_(device), backend_(compiler::BackendFor(device.target())) {}

Session::~Session() = default;

namespace {

int64_t MicrosecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() -
                                                               start)
      .count();
}

}  // namespace

Result<std::unique_ptr<Session>> Session::Create(const ir::Module& module,
                                                 runtime::Device& device) {
  std::unique_ptr<Session> session(new Session(module, device));
  if (!session->backend_->runs_kernels()) {
    return Unimplemented("sessions on the device ", device.name());
  }
  return session;
}

Result<int> Session::Prepare(std::span<const std::string> feeds,
                             std::span<const std::string> fetches) {
  std::lock_guard lock(mutex_);
  auto key = std::make_pair(std::vector(feeds.begin(), feeds.end()),
                            std::vector(fetches.begin(), fetches.end()));
  if (auto it = by_names_.find(key); it != by_names_.end()) return it->second;
  auto start = std::chrono::steady_clock::now();
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<Prepared> prepared, Build(feeds, fetches));
  prepared->info.compile_microseconds = MicrosecondsSince(start);
  prepared_.push_back(std::move(prepared));
  int number = static_cast<int>(prepared_.size()) - 1;
  by_names_[std::move(key)] = number;
  return number;
}

Result<std::unique_ptr<Session::Prepared>> Session::Build(std::span<const std::string> feeds,
                                                          std::span<const std::string> fetches) {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> module, Subgraph(*module_, feeds, fetches));
  passes::PassContext context;
  context.target = &device_.target();
  KILN_RETURN_IF_ERROR(passes::RunPipeline("op_by_op", passes::OpByOpPipeline(), *module, context));
  KILN_ASSIGN_OR_RETURN(compiler::Lowered lowered,
                        compiler::Lower(*module, *backend_, *context.fusions));
  auto prepared = std::make_unique<Prepared>(device_);
  prepared->ops.resize(lowered.program.launches.size());
  KILN_RETURN_IF_ERROR(CompileSteps(*prepared, lowered, lowered.program.prologue));
  KILN_RETURN_IF_ERROR(CompileSteps(*prepared, lowered, lowered.program.steps));
  prepared->program = std::move(lowered.program);
  program::Program& p = prepared->program;
  prepared->arenas = std::make_unique<runtime::ArenaCache>(device_, p.arena_bytes);
  KILN_RETURN_IF_ERROR(
      prepared->constants.Load([this](std::byte* to, const void* from, int64_t bytes) {
        return device_.CopyFromHost(to, from, bytes);
      }));
  KILN_RETURN_IF_ERROR(Replay(*prepared, prepared->constants.addresses(), {}).Run(p.prologue));
  prepared->constants.FreeUnused();
  prepared->info.kernels = program::CountKernels(p.steps);
  prepared->info.temporary_bytes = p.arena_bytes;
  return prepared;
}

Status Session::CompileSteps(Prepared& prepared, const codegen::LoweredProgram& lowered,
                             const program::Steps& steps) {
  Status status;
  auto set = [&](program::LaunchId id, Result<std::shared_ptr<Op>> op) {
    status = op.status();
    if (status.ok()) prepared.ops[id] = *std::move(op);
  };
  program::ForEachStep(steps, [&](const program::Step& step, bool) {
    if (!status.ok()) return;
    std::visit(Overloaded{
                   [&](const program::Launch& launch) {
                     set(launch.id, Compile(lowered.KernelOf(launch), launch.args));
                   },
                   [&](const program::Call& call) {
                     // Calls are distinct in messages, and cost nothing to compile: they are never
                     // shared.
                     const program::LaunchInfo& info = lowered.program.launches[call.id];
                     set(call.id, Load(compiler::CompileCall(call, info, *backend_)));
                   },
                   [](const program::Copy&) {},
                   [](const program::While&) {},
                   [](const program::Conditional&) {},
               },
               step.what);
  });
  return status;
}

Result<std::shared_ptr<Session::Op>> Session::Load(Result<program::Artefact> artefact) {
  KILN_RETURN_IF_ERROR(artefact.status());
  auto op = std::make_shared<Op>();
  KILN_ASSIGN_OR_RETURN(op->executable, device_.Load(*std::move(artefact)));
  return op;
}

Result<std::shared_ptr<Session::Op>> Session::Compile(const kernel::ScheduledKernel& kernel,
                                                      const std::vector<program::Slice>& args) {
  std::string text = compiler::KernelText(kernel);
  auto it = ops_.find(text);
  if (it != ops_.end()) return it->second;
  KILN_ASSIGN_OR_RETURN(std::shared_ptr<Op> op,
                        Load(compiler::CompileLaunch(kernel, text, args, *backend_)));
  ops_[std::move(text)] = op;
  return op;
}

const RunInfo& Session::InfoOf(int prepared) const {
  std::lock_guard lock(mutex_);
  return prepared_[prepared]->info;
}

const program::Signature& Session::SignatureOf(int prepared) const {
  std::lock_guard lock(mutex_);
  return prepared_[prepared]->program.signature;
}

bool Session::CallsUsersFunctions(int prepared) const {
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(prepared_[prepared]->ops, [](const std::shared_ptr<Op>& op) {
    return op && op->executable->calls_users_functions();
  });
}

Status Session::Run(int prepared, std::span<const void* const> feeds,
                    std::span<void* const> fetches, const runtime::RunOptions& options) {
  const Prepared* p;
  {
    std::lock_guard lock(mutex_);
    p = prepared_[prepared].get();
  }
  program::Addresses addresses(p->program.allocations.size());
  std::byte* arena = nullptr;
  if (p->program.arena_bytes > 0) {
    KILN_ASSIGN_OR_RETURN(arena, p->arenas->Acquire());
  }
  program::BindAllocations(p->program, feeds, fetches, p->constants.addresses(), arena,
                           addresses.data());
  Status status = Replay(*p, addresses, options).Run(p->program.steps);
  if (arena) p->arenas->Release(arena);
  return status;
}

}  // namespace kiln::session

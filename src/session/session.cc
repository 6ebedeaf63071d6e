#include "session/session.h"

#include <algorithm>
#include <chrono>

#include "base/strings.h"
#include "compiler/compile_step.h"
#include "compiler/lower.h"
#include "passes/pipelines.h"
#include "program/binding.h"
#include "program/steps.h"
#include "session/subgraph.h"

namespace kiln::session {

// One op's kernel, as a program of a single launch.
struct Session::Op {
  std::unique_ptr<runtime::LoadedExecutable> executable;
};

struct Session::Prepared {
  explicit Prepared(runtime::Device& d) : device(d) {}
  ~Prepared() {
    for (size_t i = 0; i < constants.size(); ++i) {
      device.Deallocate(constants[i], program.allocations[i].bytes);
    }
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  runtime::Device& device;
  program::Program program;
  IdVector<program::LaunchId, std::shared_ptr<Op>> ops;
  std::unique_ptr<runtime::ArenaCache> arenas;
  std::vector<std::byte*> constants;  // by allocation; null where it is none
  RunInfo info;
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
  prepared->constants.resize(p.allocations.size(), nullptr);
  prepared->arenas = std::make_unique<runtime::ArenaCache>(device_, p.arena_bytes);
  for (size_t i = 0; i < p.allocations.size(); ++i) {
    const program::Allocation& a = p.allocations[i];
    if (a.kind != program::Allocation::Kind::kConstant) continue;
    KILN_ASSIGN_OR_RETURN(prepared->constants[i], device_.Allocate(a.bytes));
    // One copy is enough.
    if (const auto literal = std::move(p.constants[static_cast<size_t>(a.number)])) {
      KILN_RETURN_IF_ERROR(device_.CopyFromHost(prepared->constants[i], literal->data(), a.bytes));
    }
  }
  Started started;
  KILN_RETURN_IF_ERROR(RunSteps(*prepared, p.prologue, prepared->constants.data(), {}, started));
  for (const auto& completion : started) KILN_RETURN_IF_ERROR(completion->Wait());
  const std::vector<bool> used = program::AllocationUses(p);
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i] || !prepared->constants[i]) continue;
    device_.Deallocate(std::exchange(prepared->constants[i], nullptr), p.allocations[i].bytes);
  }
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
    if (const auto* launch = std::get_if<program::Launch>(&step.what)) {
      set(launch->id, Compile(lowered.KernelOf(*launch), launch->args));
    } else if (const auto* call = std::get_if<program::Call>(&step.what)) {
      // Calls are distinct in messages, and cost nothing to compile: they are never shared.
      const program::LaunchInfo& info = lowered.program.launches[call->id];
      set(call->id, Load(compiler::CompileCall(*call, info, *backend_)));
    }
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
  std::vector<std::byte*> buffers(p->constants.size());
  std::byte* arena = nullptr;
  if (p->program.arena_bytes > 0) {
    KILN_ASSIGN_OR_RETURN(arena, p->arenas->Acquire());
  }
  program::BindAllocations(p->program, feeds, fetches, p->constants.data(), arena, buffers.data());
  Started started;
  Status status = RunSteps(*p, p->program.steps, buffers.data(), options, started);
  // The first failure is the cause of the others.
  for (const auto& completion : started) {
    Status end = completion->Wait();
    if (status.ok()) status = end;
  }
  if (arena) p->arenas->Release(arena);
  return status;
}

Status Session::RunOp(const Prepared& prepared, program::LaunchId launch,
                      const std::vector<program::Slice>& slices, std::byte* const* buffers,
                      const runtime::RunOptions& options, Started& started) const {
  constexpr size_t kInline = 64;
  const void* inline_args[kInline];
  std::vector<const void*> many(slices.size() > kInline ? slices.size() : 0);
  std::span<const void*> args(many.empty() ? inline_args : many.data(), slices.size());
  for (size_t i = 0; i < slices.size(); ++i) {
    args[i] = buffers[slices[i].allocation] + slices[i].offset;
  }
  runtime::RunOptions quiet = options;
  // A GPU has lanes of its own; the bar here is the host's submission time.
  const bool shows_runs = device_.shows_runs();
  if (!shows_runs) quiet.trace = nullptr;
  int64_t start = options.trace ? TraceSink::Now() : 0;
  Result<std::unique_ptr<runtime::Completion>> completion =
      prepared.ops[launch]->executable->Start(args, {}, quiet);
  if (!completion.ok()) return completion.status();
  if (*completion) {
    // In a timeline an op ends before the next one begins.
    if (options.trace && !shows_runs) KILN_RETURN_IF_ERROR((*completion)->Wait());
    started.push_back(*std::move(completion));
  }
  if (options.trace) {
    const program::LaunchInfo& info = prepared.program.launches[launch];
    options.trace->Add(
        {info.kernel_name,
         info.is_call ? "call" : "kernel",
         start,
         TraceSink::Now() - start,
         TraceSink::LaneOfThisThread(),
         {{"ops", Join(info.op_names, ", ")}, {"bytes", info.bytes}, {"flops", info.flops}}});
  }
  return OkStatus();
}

Status Session::RunSteps(const Prepared& prepared, const program::Steps& steps,
                         std::byte* const* buffers, const runtime::RunOptions& options,
                         Started& started) const {
  auto at = [&](const program::Slice& s) { return buffers[s.allocation] + s.offset; };
  for (const program::Step& step : steps) {
    if (const auto* launch = std::get_if<program::Launch>(&step.what)) {
      KILN_RETURN_IF_ERROR(RunOp(prepared, launch->id, launch->args, buffers, options, started));
    } else if (const auto* call = std::get_if<program::Call>(&step.what)) {
      KILN_RETURN_IF_ERROR(RunOp(prepared, call->id, call->args, buffers, options, started));
    } else if (const auto* copy = std::get_if<program::Copy>(&step.what)) {
      KILN_RETURN_IF_ERROR(device_.Copy(at(copy->to), at(copy->from), copy->from.bytes));
    } else if (const auto* loop = std::get_if<program::While>(&step.what)) {
      while (true) {
        if (options.cancel && *options.cancel != 0) return Cancelled("the run was cancelled");
        KILN_RETURN_IF_ERROR(RunSteps(prepared, loop->condition, buffers, options, started));
        std::byte goes_on{0};
        KILN_RETURN_IF_ERROR(device_.CopyToHost(&goes_on, at(loop->predicate), 1));
        // The ops awaited by that.
        for (const auto& completion : started) KILN_RETURN_IF_ERROR(completion->Wait());
        started.clear();
        if (goes_on == std::byte{0}) break;
        KILN_RETURN_IF_ERROR(RunSteps(prepared, loop->body, buffers, options, started));
      }
    } else {
      const auto& branch = std::get<program::Conditional>(step.what);
      std::byte value[sizeof(int32_t)];
      KILN_RETURN_IF_ERROR(device_.CopyToHost(value, at(branch.index), branch.index.bytes));
      size_t index = program::BranchAt(value, branch.by_predicate, branch.branches.size());
      KILN_RETURN_IF_ERROR(RunSteps(prepared, branch.branches[index], buffers, options, started));
    }
  }
  return OkStatus();
}

}  // namespace kiln::session

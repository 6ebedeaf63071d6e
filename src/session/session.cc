#include "session/session.h"

#include <algorithm>
#include <chrono>

#include "base/strings.h"
#include "codegen/codegen.h"
#include "compiler/lower.h"
#include "kernel/contraction.h"
#include "passes/pipelines.h"
#include "plan/uses.h"
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
  plan::Program program;
  // By launch id.
  std::vector<std::shared_ptr<Op>> ops;
  std::unique_ptr<runtime::ArenaCache> arenas;
  std::vector<std::byte*> constants;  // by allocation; null where it is none
  RunInfo info;
};

Session::Session(const ir::Module& module, runtime::Device& device)
    : module_(module.Clone()), device_(device) {}

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
  if (device.target().kind == target::Kind::kReference) {
    return Unimplemented("sessions on the device ", device.name());
  }
  return std::unique_ptr<Session>(new Session(module, device));
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
  KILN_ASSIGN_OR_RETURN(compiler::Lowered lowered, compiler::Lower(*module, device_.target()));
  auto prepared = std::make_unique<Prepared>(device_);
  prepared->program = std::move(lowered.program);
  plan::Program& p = prepared->program;
  prepared->ops.resize(p.launches.size());
  prepared->constants.resize(p.allocations.size(), nullptr);
  KILN_RETURN_IF_ERROR(CompileSteps(*prepared, p.prologue));
  KILN_RETURN_IF_ERROR(CompileSteps(*prepared, p.steps));
  prepared->arenas = std::make_unique<runtime::ArenaCache>(device_, p.arena_bytes);
  for (size_t i = 0; i < p.allocations.size(); ++i) {
    const plan::Allocation& a = p.allocations[i];
    if (a.kind != plan::Allocation::Kind::kConstant) continue;
    KILN_ASSIGN_OR_RETURN(prepared->constants[i], device_.Allocate(a.bytes));
    // One copy is enough.
    if (const auto literal = std::move(p.constants[static_cast<size_t>(a.number)])) {
      KILN_RETURN_IF_ERROR(device_.CopyFromHost(prepared->constants[i], literal->data(), a.bytes));
    }
  }
  Started started;
  KILN_RETURN_IF_ERROR(RunSteps(*prepared, p.prologue, prepared->constants.data(), {}, started));
  for (const auto& completion : started) KILN_RETURN_IF_ERROR(completion->Wait());
  const std::vector<bool> used = plan::AllocationUses(p);
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i] || !prepared->constants[i]) continue;
    device_.Deallocate(std::exchange(prepared->constants[i], nullptr), p.allocations[i].bytes);
  }
  prepared->info.kernels = plan::CountKernels(p.steps);
  prepared->info.temporary_bytes = p.arena_bytes;
  return prepared;
}

Status Session::CompileSteps(Prepared& prepared, const plan::Steps& steps) {
  for (const plan::Step& step : steps) {
    if (const auto* launch = std::get_if<plan::Launch>(&step.what)) {
      KILN_ASSIGN_OR_RETURN(prepared.ops[launch->id],
                            Compile(prepared.program.kernels[launch->kernel], launch->args));
    } else if (const auto* call = std::get_if<plan::Call>(&step.what)) {
      KILN_ASSIGN_OR_RETURN(prepared.ops[call->id],
                            Compile(*call, prepared.program.launches[call->id]));
    } else if (const auto* loop = std::get_if<plan::While>(&step.what)) {
      KILN_RETURN_IF_ERROR(CompileSteps(prepared, loop->condition));
      KILN_RETURN_IF_ERROR(CompileSteps(prepared, loop->body));
    } else if (const auto* branch = std::get_if<plan::Conditional>(&step.what)) {
      for (const plan::Steps& b : branch->branches) KILN_RETURN_IF_ERROR(CompileSteps(prepared, b));
    }
  }
  return OkStatus();
}

Result<std::shared_ptr<Session::Op>> Session::Compile(const plan::ScheduledKernel& kernel,
                                                      const std::vector<plan::Slice>& args) {
  std::string key = Cat(static_cast<int>(kernel.form), " ", kernel.kernel.ToString());
  if (kernel.gemm) {
    key += Cat(*kernel.gemm, " ", kernel.contraction->problem, " ", kernel.contraction->a_param);
  }
  auto it = ops_.find(key);
  if (it != ops_.end()) return it->second;
  plan::Program program;
  program.name = kernel.kernel.name;
  program.kernels = {kernel};
  program.launches = {{kernel.kernel.name, kernel.kernel.op_names, 0, 0}};
  KILN_ASSIGN_OR_RETURN(
      std::shared_ptr<Op> op,
      CompileStep(std::move(program), {plan::Launch{.kernel = 0, .id = 0}}, args));
  ops_[std::move(key)] = op;
  return op;
}

// Calls are told apart in messages, and take no time to compile: each is one of its own.
Result<std::shared_ptr<Session::Op>> Session::Compile(const plan::Call& call,
                                                      const plan::LaunchInfo& info) {
  plan::Program program;
  program.name = call.target;
  program.launches = {info};
  return CompileStep(std::move(program),
                     {plan::Call{.target = call.target, .config = call.config, .id = 0}},
                     call.args);
}

Result<std::shared_ptr<Session::Op>> Session::CompileStep(plan::Program program, plan::Step step,
                                                          const std::vector<plan::Slice>& args) {
  plan::Artefact artefact;
  artefact.target = device_.target();
  plan::Program& p = artefact.program;
  p = std::move(program);
  p.target = device_.target().kind;
  auto* launch = std::get_if<plan::Launch>(&step.what);
  std::vector<plan::Slice>& own = launch ? launch->args : std::get<plan::Call>(step.what).args;
  // Every argument is an allocation of its own, which Run is given as a parameter's leaf. A call
  // that has one memory twice must know it.
  for (const plan::Slice& slice : args) {
    int number = static_cast<int>(p.allocations.size());
    p.allocations.push_back({plan::Allocation::Kind::kParameter, number, slice.bytes});
    if (!launch) number = static_cast<int>(std::ranges::find(args, slice) - args.begin());
    own.push_back({number, 0, slice.bytes});
  }
  p.steps.push_back(std::move(step));
  const target::Target& target = device_.target();
  KILN_ASSIGN_OR_RETURN(artefact.objects,
                        target.kind == target::Kind::kGpu
                            ? codegen::GenerateGpu(p, target, codegen::Options())
                            : codegen::GenerateCpu(p, target.cpu, codegen::Options()));
  auto op = std::make_shared<Op>();
  KILN_ASSIGN_OR_RETURN(op->executable, device_.Load(std::move(artefact)));
  return op;
}

const RunInfo& Session::InfoOf(int prepared) const {
  std::lock_guard lock(mutex_);
  return prepared_[prepared]->info;
}

const plan::Signature& Session::SignatureOf(int prepared) const {
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
  std::vector<std::byte*> buffers = p->constants;
  std::byte* arena = nullptr;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const plan::Allocation& a = p->program.allocations[i];
    switch (a.kind) {
      case plan::Allocation::Kind::kParameter:
        buffers[i] = static_cast<std::byte*>(const_cast<void*>(feeds[a.number]));
        break;
      case plan::Allocation::Kind::kResult:
        buffers[i] = static_cast<std::byte*>(fetches[a.number]);
        break;
      case plan::Allocation::Kind::kConstant:
        break;
      case plan::Allocation::Kind::kArena:
        if (a.bytes > 0) {
          KILN_ASSIGN_OR_RETURN(arena, p->arenas->Acquire());
        }
        buffers[i] = arena;
        break;
    }
  }
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

Status Session::RunOp(const Prepared& prepared, int launch, const std::vector<plan::Slice>& slices,
                      std::byte* const* buffers, const runtime::RunOptions& options,
                      Started& started) const {
  constexpr size_t kInline = 64;
  const void* inline_args[kInline];
  std::vector<const void*> many(slices.size() > kInline ? slices.size() : 0);
  std::span<const void*> args(many.empty() ? inline_args : many.data(), slices.size());
  for (size_t i = 0; i < slices.size(); ++i) {
    args[i] = buffers[slices[i].allocation] + slices[i].offset;
  }
  runtime::RunOptions quiet = options;
  // A GPU has lanes of its own; what is shown here is how long the host took to ask it.
  const bool on_gpu = device_.target().kind == target::Kind::kGpu;
  if (!on_gpu) quiet.trace = nullptr;
  int64_t start = options.trace ? TraceSink::Now() : 0;
  Result<std::unique_ptr<runtime::Completion>> completion =
      prepared.ops[launch]->executable->Start(args, {}, quiet);
  if (!completion.ok()) return completion.status();
  if (*completion) {
    // In a timeline an op ends before the next one begins.
    if (options.trace && !on_gpu) KILN_RETURN_IF_ERROR((*completion)->Wait());
    started.push_back(*std::move(completion));
  }
  if (options.trace) {
    const plan::LaunchInfo& info = prepared.program.launches[launch];
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

Status Session::RunSteps(const Prepared& prepared, const plan::Steps& steps,
                         std::byte* const* buffers, const runtime::RunOptions& options,
                         Started& started) const {
  auto at = [&](const plan::Slice& s) { return buffers[s.allocation] + s.offset; };
  for (const plan::Step& step : steps) {
    if (const auto* launch = std::get_if<plan::Launch>(&step.what)) {
      KILN_RETURN_IF_ERROR(RunOp(prepared, launch->id, launch->args, buffers, options, started));
    } else if (const auto* call = std::get_if<plan::Call>(&step.what)) {
      KILN_RETURN_IF_ERROR(RunOp(prepared, call->id, call->args, buffers, options, started));
    } else if (const auto* copy = std::get_if<plan::Copy>(&step.what)) {
      KILN_RETURN_IF_ERROR(device_.Copy(at(copy->to), at(copy->from), copy->from.bytes));
    } else if (const auto* loop = std::get_if<plan::While>(&step.what)) {
      while (true) {
        if (options.cancel && *options.cancel != 0) return Cancelled("the run was cancelled");
        KILN_RETURN_IF_ERROR(RunSteps(prepared, loop->condition, buffers, options, started));
        std::byte goes_on{0};
        KILN_RETURN_IF_ERROR(device_.CopyToHost(&goes_on, at(loop->predicate), 1));
        // Those that have been waited for by that.
        for (const auto& completion : started) KILN_RETURN_IF_ERROR(completion->Wait());
        started.clear();
        if (goes_on == std::byte{0}) break;
        KILN_RETURN_IF_ERROR(RunSteps(prepared, loop->body, buffers, options, started));
      }
    } else {
      const auto& branch = std::get<plan::Conditional>(step.what);
      std::byte value[sizeof(int32_t)];
      KILN_RETURN_IF_ERROR(device_.CopyToHost(value, at(branch.index), branch.index.bytes));
      size_t index = plan::BranchAt(value, branch.by_predicate, branch.branches.size());
      KILN_RETURN_IF_ERROR(RunSteps(prepared, branch.branches[index], buffers, options, started));
    }
  }
  return OkStatus();
}

}  // namespace kiln::session

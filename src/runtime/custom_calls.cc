#include "runtime/custom_calls.h"

#include <algorithm>
#include <new>

#include "base/float_environment.h"
#include "base/strings.h"
#include "program/steps.h"
#include "runtime/harness.h"
#include "runtime/host.h"
#include "runtime/thread_pool.h"

namespace kiln::runtime {
namespace {

// Inside generated code a failure is a value.
Status RunGuarded(const lib::Function& function, const kiln_frame* frame, void* const* args) {
  try {
    return function.Run(frame, args);
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("there is no memory for it");
  }
}

}  // namespace

std::string CallName(const program::LaunchInfo& info) {
  constexpr std::string_view kOwn = "kiln.";
  std::string ops = Join(info.op_names, ", ");
  if (StartsWith(info.kernel_name, kOwn)) {
    return Cat(info.kernel_name.substr(kOwn.size()), " '", ops, "'");
  }
  return Cat("custom-call '", ops, "' of ", info.kernel_name);
}

Status CustomCallRegistry::Add(std::string_view target, Maker& make) {
  if (target.empty()) return InvalidArgument("the name of a custom call's target is empty");
  if (StartsWith(target, "kiln.")) {
    return InvalidArgument("the target '", target, "' has a name of the library's own");
  }
  auto exists = [&] {
    return AlreadyExists("a function is registered for '", target, "' already");
  };
  for (std::span<const lib::Entry> entries : {lib::Library(), Harness()}) {
    for (const lib::Entry& entry : entries) {
      if (entry.target == target) return exists();
    }
  }
  std::lock_guard lock(mutex_);
  auto [it, is_new] = makers_.try_emplace(std::string(target));
  if (!is_new) return exists();
  it->second = std::move(make);
  return OkStatus();
}

void CustomCallRegistry::Clear() {
  std::map<std::string, Maker, std::less<>> gone;  // without the lock
  std::lock_guard lock(mutex_);
  std::swap(gone, makers_);
}

Result<std::shared_ptr<const lib::Function>> CustomCallRegistry::Make(
    std::string_view target, const CallSignature& signature) const {
  for (std::span<const lib::Entry> entries : {lib::Library(), Harness()}) {
    for (const lib::Entry& entry : entries) {
      if (entry.target != target) continue;
      for (const std::vector<Shape>* shapes : {&signature.operands, &signature.results}) {
        if (std::ranges::all_of(*shapes, &Shape::is_row_major)) continue;
        return Unimplemented("is called as ", signature, "; it takes row-major arrays");
      }
      return entry.make(signature);
    }
  }
  Maker make;
  {
    std::lock_guard lock(mutex_);
    auto it = makers_.find(target);
    if (it != makers_.end()) make = it->second;
  }
  if (make) return make(signature);
  return NotFound("no function is registered for the target '", target, "'");
}

Result<ProgramCalls> ProgramCalls::Make(const program::Program& program,
                                        const CustomCallRegistry* registry) {
  static const CustomCallRegistry& own = *new CustomCallRegistry;
  if (!registry) registry = &own;
  ProgramCalls calls;
  // Equal calls share a prepared function, unless it is the user's, which may have a state.
  std::map<std::pair<std::string_view, std::string_view>, std::shared_ptr<const Prepared>> known;
  for (const program::HostCall* call : program::HostCallSteps(program)) {
    calls.prepared_.resize(program.launches.size());
    auto& prepared = known[{call->target, call->config}];
    if (!prepared) {
      auto fail = [&](const Status& status) {
        return status.WithContext(CallName(program.launches[call->id]));
      };
      auto signature = CallSignature::Decode(call->config);
      if (!signature.ok()) return fail(signature.status());
      auto function = registry->Make(call->target, *signature);
      if (!function.ok()) return fail(function.status());
      calls.has_users_ |= (*function)->is_users();
      prepared =
          std::make_shared<const Prepared>(Prepared{*std::move(function), *std::move(signature)});
    }
    calls.prepared_[call->id] = prepared;
    if (prepared->function->is_users()) prepared = nullptr;
  }
  return calls;
}

Status ProgramCalls::Run(const program::Program& program, program::LaunchId launch,
                         const kiln_frame* frame, void* const* args) const {
  Status status = RunGuarded(*at(launch).function, frame, args);
  if (status.ok()) return status;
  return status.WithContext(CallName(program.launches[launch]));
}

namespace {

kiln_frame FrameOf(HostRun& run, int threads) {
  kiln_frame frame{};
  frame.table = &HostTable();
  frame.trace = run.trace;
  frame.host = &run;
  frame.threads = run.pool ? run.pool->threads() : 1;
  if (threads > 0) frame.threads = std::min(threads, frame.threads);
  return frame;
}

}  // namespace

Status ProgramCalls::RunOnHost(const program::Program& program, program::LaunchId launch,
                               void* const* args, ThreadPool* pool, int threads, TraceSink* trace,
                               Probes& probes) const {
  HostRun run;
  run.pool = pool;
  run.program = &program;
  run.trace = trace;
  run.probes = &probes;
  kiln_frame frame = FrameOf(run, threads);
  DefaultFloatEnvironment environment;
  if (trace) frame.table->trace_begin(&frame, launch.value());
  KILN_RETURN_IF_ERROR(Run(program, launch, &frame, args));
  if (trace) frame.table->trace_end(&frame, launch.value());
  return OkStatus();
}

Status RunFunction(const lib::Function& function, void* const* args, ThreadPool* pool) {
  HostRun run;
  run.pool = pool;
  kiln_frame frame = FrameOf(run, 0);
  DefaultFloatEnvironment environment;
  return RunGuarded(function, &frame, args);
}

}  // namespace kiln::runtime

#include "device/cpu/executable.h"

#include <algorithm>
#include <cstring>

#include "base/float_environment.h"
#include "base/stack.h"
#include "base/strings.h"
#include "device/cpu/stack_sizes.h"
#include "program/binding.h"
#include "program/steps.h"
#include "runtime/host.h"

namespace kiln::device {

using program::Allocation;

namespace {

// The part of the caller's stack, at least 256 KiB, that code may use.
constexpr size_t kMostOfCallersStack = 64 << 10;

}  // namespace

CpuExecutable::CpuExecutable(program::Program program, runtime::Allocator& allocator,
                             runtime::ThreadPool& pool)
    : program_(std::move(program)),
      allocator_(allocator),
      pool_(pool),
      arenas_(allocator, program_.arena_bytes),
      constants_(allocator, program_, true),
      binder_(allocator, program_) {
  const std::vector<int>& aliases = program_.signature.aliases;
  for (size_t r = 0; r < aliases.size(); ++r) {
    if (aliases[r] >= 0) aliases_.push_back({r, static_cast<size_t>(aliases[r])});
  }
}

Result<std::unique_ptr<CpuExecutable>> CpuExecutable::Load(program::Artefact artefact,
                                                           runtime::Allocator& allocator,
                                                           runtime::ThreadPool& pool,
                                                           const runtime::CustomCallRegistry* calls,
                                                           TraceSink* trace) {
  std::unique_ptr<CpuExecutable> e(new CpuExecutable(std::move(artefact.program), allocator, pool));
  KILN_ASSIGN_OR_RETURN(e->calls_, runtime::ProgramCalls::Make(e->program(), calls));
  {
    TraceSpan span(trace, "link", "load");
    Result<size_t> stack_bytes = StackBytesOf(artefact.code);
    if (!stack_bytes.ok()) return stack_bytes.status().WithContext(e->program().name);
    e->wants_own_stack_ = *stack_bytes > kMostOfCallersStack;
    Result<std::unique_ptr<LinkedCode>> code = Link(artefact.code);
    if (!code.ok()) return code.status().WithContext(e->program().name);
    e->code_ = *std::move(code);
    KILN_ASSIGN_OR_RETURN(e->entry_, e->FindEntry(EntrySymbol(e->program())));
    for (size_t g = 0; g < e->binder_.groups().size(); ++g) {
      KILN_ASSIGN_OR_RETURN(e->bindings_.emplace_back(),
                            e->FindEntry(BindingSymbol(e->program(), g)));
    }
    span.AddArg("code_bytes", e->code_bytes());
  }
  e->KeepCode(artefact);
  TraceSpan span(trace, "constants", "load");
  KILN_RETURN_IF_ERROR(e->constants_.Load([](std::byte* to, const void* from, int64_t bytes) {
    if (from) {
      std::memcpy(to, from, static_cast<size_t>(bytes));
    } else {
      std::memset(to, 0, static_cast<size_t>(bytes));
    }
    return OkStatus();
  }));
  KILN_RETURN_IF_ERROR(e->RunPrologue());
  span.AddArg("bytes", e->constant_bytes());
  return e;
}

Status CpuExecutable::SaveConstants(program::Program& saved) const {
  return constants_.Save(saved, [](std::byte* to, const void* from, int64_t bytes) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return OkStatus();
  });
}

Result<kiln_entry_fn> CpuExecutable::FindEntry(const std::string& symbol) {
  Result<void*> address = code_->Find(symbol);
  if (!address.ok()) return address.status().WithContext(program().name);
  return reinterpret_cast<kiln_entry_fn>(*address);
}

Result<std::shared_ptr<const runtime::Binding>> CpuExecutable::Bind(
    const runtime::Binding* previous, std::span<const size_t> groups,
    std::span<const void* const> arguments) {
  return binder_.Bind(previous, constants_.addresses(), groups, arguments,
                      [this](size_t group, const program::Addresses& addresses) {
                        return RunAlone(bindings_[group], addresses);
                      });
}

Status CpuExecutable::RunPrologue() {
  if (program_.prologue.empty()) return OkStatus();
  KILN_ASSIGN_OR_RETURN(kiln_entry_fn prologue, FindEntry(PrologueSymbol(program_)));
  KILN_RETURN_IF_ERROR(RunAlone(prologue, constants_.addresses()));
  constants_.FreeUnused();
  return OkStatus();
}

Status CpuExecutable::RunAlone(kiln_entry_fn entry, const program::Addresses& addresses) {
  const std::vector<void*> buffers(addresses.begin(), addresses.end());
  return RunEntry(entry, buffers.data(), {});
}

Status CpuExecutable::RunEntry(kiln_entry_fn entry, void* const* buffers,
                               const RunOptions& options) {
  runtime::HostRun run;
  run.pool = &pool_;
  run.program = &program();
  run.calls = &calls_;
  run.trace = options.trace;
  Probes probes;
  run.probes = &probes;
  kiln_frame frame{};
  frame.buffers = buffers;
  frame.table = &runtime::HostTable();
  frame.trace = options.trace;
  frame.cancel = options.cancel;
  frame.host = &run;
  frame.threads =
      options.threads > 0 ? std::min(options.threads, pool_.threads()) : pool_.threads();
  DefaultFloatEnvironment environment;
  int32_t code = 0;
  if (wants_own_stack_) {
    KILN_RETURN_IF_ERROR(OnOwnStack([&] {
      if (options.begun) *options.begun = true;
      code = entry(&frame);
    }));
  } else {
    if (options.begun) *options.begun = true;
    code = entry(&frame);
  }
  return code == 0 && run.code == 0 ? OkStatus() : runtime::StatusOf(run, code);
}

Status CpuExecutable::Run(std::span<const void* const> arguments, std::span<void* const> results,
                          const RunOptions& options) {
  const program::Program& p = program();
  // Small programs avoid an allocation here.
  constexpr size_t kInline = 64;
  void* inline_buffers[kInline];
  std::vector<void*> many;
  void** buffers = inline_buffers;
  if (p.allocations.size() > kInline) {
    many.resize(p.allocations.size());
    buffers = many.data();
  }
  std::byte* arena = nullptr;
  if (p.arena_bytes > 0) {
    KILN_ASSIGN_OR_RETURN(arena, arenas_.Acquire());
  }
  program::BindAllocations(p, arguments, results,
                           options.binding ? options.binding->addresses() : constants_.addresses(),
                           arena, buffers);
  // An argument that is not donated is copied to the result's memory.
  for (auto [result, argument] : aliases_) {
    if (results[result] == arguments[argument]) continue;
    int64_t bytes = p.signature.results[result].byte_size();
    if (bytes > 0) {
      std::memcpy(results[result], arguments[argument], static_cast<size_t>(bytes));
    }
  }
  Status status = RunEntry(entry_, buffers, options);
  if (arena) arenas_.Release(arena);
  return status;
}

}  // namespace kiln::device

#include "device/gpu/executable.h"

#include <algorithm>
#include <iterator>

#include "base/overloaded.h"
#include "base/strings.h"
#include "device/gpu/resources.h"
#include "program/binding.h"
#include "program/steps.h"

namespace kiln::device {
namespace {

using program::Allocation;

constexpr int64_t kNumberBytes = 8;

// The number of commands from which a graph pays.
constexpr size_t kLeastCommands = 2;

bool HasControl(const program::Steps& steps) {
  return std::ranges::any_of(steps, program::HoldsSteps);
}

// A program for an older GPU may ask for more of a block than this one has.
Status CheckSharedMemory(const program::Program& program, const target::Gpu& gpu) {
  for (const program::Kernel& kernel : program.kernels) {
    for (const program::Grid& grid : kernel.grids) {
      if (grid.shared_bytes <= gpu.shared_bytes_per_block) continue;
      return FailedPrecondition("'", program.name, "': blocks of ", grid.symbol, " have ",
                                grid.shared_bytes, " bytes of shared memory, and the device's ",
                                gpu.shared_bytes_per_block);
    }
  }
  return OkStatus();
}

// The segment of the next command that may be part of a graph.
GpuSegment& LastSegment(GpuSteps& steps) {
  auto* last = steps.empty() ? nullptr : std::get_if<GpuSegment>(&steps.back());
  if (last && (last->commands.empty() || !last->commands.back().library)) return *last;
  return std::get<GpuSegment>(steps.emplace_back(GpuSegment()));
}

class EventCompletion : public runtime::Completion {
 public:
  EventCompletion(std::unique_ptr<GpuEvent> event, std::unique_ptr<GpuRecording> recording)
      : event_(std::move(event)), recording_(std::move(recording)) {}
  Status Wait() override {
    Status status = event_->Wait();
    // A failed wait is not an end: its caller could free memory still in use.
    if (!status.ok()) (void)event_->Wait();
    if (recording_) std::exchange(recording_, nullptr)->Show();
    return status;
  }

 private:
  std::unique_ptr<GpuEvent> event_;
  std::unique_ptr<GpuRecording> recording_;
};

// Submits work, described by `describe`, and records it in the timeline if there is one.
template <typename Describe, typename Ask>
Status InTimeline(GpuRecording* recording, Describe describe, Ask ask) {
  return recording ? recording->Around(describe(), ask) : ask();
}

}  // namespace

GpuExecutable::GpuExecutable(program::Program program, GpuDevice& device)
    : program_(std::move(program)),
      device_(device),
      constants_(device, program_, false),
      binder_(device, program_) {
  const std::vector<int>& aliases = program_.signature.aliases;
  for (size_t r = 0; r < aliases.size(); ++r) {
    if (aliases[r] >= 0) aliases_.push_back({r, static_cast<size_t>(aliases[r])});
  }
}

GpuExecutable::~GpuExecutable() {
  device_.Deallocate(arena_, program().arena_bytes);
  device_.Deallocate(workspace_.address, workspace_.bytes);
  if (!number_ && !host_.address && modules_.empty()) return;
  // Code and pinned memory are freed at once: no work may be using them.
  if (auto stream = device_.Stream(); stream.ok()) (void)(*stream)->Synchronise();
  if (host_.address) device_.machine().FreePinned(host_.address, host_.bytes);
  if (number_) device_.machine().FreePinned(number_, kNumberBytes);
}

Result<std::unique_ptr<GpuExecutable>> GpuExecutable::Load(program::Artefact artefact,
                                                           GpuDevice& device, TraceSink* trace) {
  KILN_RETURN_IF_ERROR(CheckSharedMemory(artefact.program, device.target().gpu));
  std::unique_ptr<GpuExecutable> e(new GpuExecutable(std::move(artefact.program), device));
  KILN_ASSIGN_OR_RETURN(e->calls_,
                        runtime::ProgramCalls::Make(e->program(), device.call_host().registry));
  {
    TraceSpan span(trace, "code", "load");
    KILN_RETURN_IF_ERROR(e->LoadCode(artefact));
    span.AddArg("code_bytes", e->code_bytes());
  }
  e->KeepCode(artefact);
  {
    TraceSpan span(trace, "constants", "load");
    KILN_RETURN_IF_ERROR(e->LoadConstants());
    KILN_RETURN_IF_ERROR(e->RunPrologue());
    span.AddArg("bytes", e->constant_bytes());
  }
  TraceSpan span(trace, "commands", "load");
  // The host is called between graphs.
  e->may_be_whole_ =
      device.machine().loops_on_device() && HasControl(e->program().steps) && e->calls_.empty();
  KILN_ASSIGN_OR_RETURN(e->steps_, e->Translate(e->program().steps));
  e->has_loops_ = HasControl(e->steps_, true);
  return e;
}

int64_t GpuExecutable::code_bytes() const {
  int64_t bytes = 0;
  for (const auto& module : modules_) bytes += module->code_bytes();
  return bytes;
}

std::string GpuExecutable::ResourceReport() const {
  return ResourceTable(program(), [&](const std::string& symbol) { return FindKernel(symbol); });
}

Status GpuExecutable::LoadCode(const program::Artefact& artefact) {
  const std::optional<program::MachineCode>& machine_code = artefact.machine_code;
  const bool fits = machine_code &&
                    machine_code->architecture == device_.machine().architecture() &&
                    machine_code->images.size() == artefact.code.size();
  for (size_t i = 0; i < artefact.code.size(); ++i) {
    const std::string_view image = fits ? machine_code->images[i] : std::string_view();
    Result<std::unique_ptr<GpuModule>> module = device_.machine().Load(artefact.code[i], image);
    if (!module.ok()) return module.status().WithContext(program().name);
    modules_.push_back(*std::move(module));
  }
  return OkStatus();
}

std::optional<program::MachineCode> GpuExecutable::Assembled(
    std::span<const std::string> code) const {
  GpuMachine& machine = device_.machine();
  if (machine.architecture().empty() || code.empty()) return std::nullopt;
  program::MachineCode assembled{.architecture = machine.architecture()};
  for (const std::string& piece : code) {
    Result<std::string> image = machine.Assemble(piece);
    if (!image.ok()) {
      device_.Note(Cat("'", program().name,
                       "' is saved without assembled code: ", image.status().message()));
      return std::nullopt;
    }
    assembled.images.push_back(*std::move(image));
  }
  return assembled;
}

Status GpuExecutable::LoadConstants() {
  KILN_RETURN_IF_ERROR(constants_.Load([this](std::byte* to, const void* from, int64_t bytes) {
    return from ? device_.CopyFromHost(to, from, bytes) : device_.FillZero(to, bytes);
  }));
  if (program_.arena_bytes > 0) {
    KILN_ASSIGN_OR_RETURN(arena_, device_.Allocate(program_.arena_bytes));
  }
  return OkStatus();
}

Status GpuExecutable::SaveConstants(program::Program& saved) const {
  return constants_.Save(saved, [this](std::byte* to, const void* from, int64_t bytes) {
    return device_.CopyToHost(to, static_cast<const std::byte*>(from), bytes);
  });
}

Status GpuExecutable::RunPrologue() {
  if (program_.prologue.empty()) return OkStatus();
  KILN_RETURN_IF_ERROR(RunOnce(program_.prologue, constants_.addresses()));
  constants_.FreeUnused();
  return OkStatus();
}

Result<std::shared_ptr<const runtime::Binding>> GpuExecutable::Bind(
    const runtime::Binding* previous, std::span<const size_t> groups,
    std::span<const void* const> arguments) {
  return binder_.Bind(previous, constants_.addresses(), groups, arguments,
                      [this](size_t group, const program::Addresses& addresses) {
                        return RunOnce(binder_.groups()[group].steps, addresses);
                      });
}

Status GpuExecutable::RunOnce(const program::Steps& given, const program::Addresses& addresses) {
  // Translation and the host's driving of loops use what runs use.
  std::lock_guard lock(mutex_);
  KILN_ASSIGN_OR_RETURN(GpuSteps steps, Translate(given));
  KILN_ASSIGN_OR_RETURN(GpuStream * stream, device_.Stream());
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<GpuEvent> event, device_.machine().MakeEvent());
  const runtime::RunOptions options;
  Replay run{*stream, addresses, options, nullptr};
  {
    std::lock_guard order(device_.order());
    Status status = Enqueue(steps, run);
    if (status.ok()) status = stream->Record(*event);
    // Work in the stream still uses the program's memory.
    if (!status.ok()) (void)stream->Synchronise();
    KILN_RETURN_IF_ERROR(status);
  }
  return event->Wait();
}

Result<GpuKernel*> GpuExecutable::FindKernel(const std::string& symbol) const {
  for (const auto& module : modules_) {
    Result<GpuKernel*> kernel = module->Find(symbol);
    if (kernel.ok() || kernel.status().code() != Code::kNotFound) return kernel;
  }
  return Internal(program().name, ": there is no code for ", symbol);
}

Status GpuExecutable::Add(const program::Launch& launch, GpuSteps& steps) {
  const program::Kernel& kernel = program().kernels[launch.kernel];
  std::vector<GpuCommand> commands;
  for (const program::Grid& grid : kernel.grids) {
    GpuCommand& command = commands.emplace_back();
    KILN_ASSIGN_OR_RETURN(command.kernel, FindKernel(grid.symbol));
    command.grid = {grid.blocks, grid.threads, grid.shared_bytes};
    command.args = launch.args;
    command.launch = launch.id;
  }
  if (GpuLibraryCall* call = LibraryFor(launch.kernel, commands)) {
    GpuCommand command;
    command.library = call->gemm.get();
    for (const program::LibraryMatrix* matrix :
         {&call->what.x, &call->what.y, &call->what.out_matrix}) {
      command.args.push_back(launch.args[static_cast<size_t>(matrix->argument)]);
    }
    command.launch = launch.id;
    // Commands around it are graphs of their own.
    std::get<GpuSegment>(steps.emplace_back(GpuSegment())).commands.push_back(std::move(command));
    return OkStatus();
  }
  std::ranges::move(commands, std::back_inserter(LastSegment(steps).commands));
  return OkStatus();
}

GpuLibraryCall* GpuExecutable::LibraryFor(program::KernelId kernel,
                                          std::span<const GpuCommand> ours) {
  // The whole program is one graph, and the library's work cannot be part of it.
  if (may_be_whole_) return nullptr;
  auto [found, is_new] = library_.try_emplace(kernel);
  if (is_new) {
    found->second = ChooseLibrary(device_, program().kernels[kernel], ours);
    Status status =
        found->second ? ReserveWorkspace(found->second->gemm->workspace_bytes()) : OkStatus();
    if (!status.ok()) {
      device_.Note(Cat("the gemm ", found->second->what,
                       " goes by our kernel after all: ", status.message()));
      found->second.reset();
    }
  }
  return found->second.get();
}

Status GpuExecutable::ReserveWorkspace(int64_t bytes) {
  if (bytes <= workspace_.bytes) return OkStatus();
  KILN_ASSIGN_OR_RETURN(std::byte * memory, device_.Allocate(bytes));
  device_.Deallocate(workspace_.address, workspace_.bytes);
  workspace_ = {memory, bytes};
  return OkStatus();
}

Result<GpuSteps> GpuExecutable::Translate(const program::Steps& steps) {
  GpuSteps result;
  for (const program::Step& step : steps) {
    KILN_RETURN_IF_ERROR(std::visit([&](const auto& s) { return Add(s, result); }, step.what));
  }
  return result;
}

Status GpuExecutable::Add(const program::Copy& copy, GpuSteps& steps) {
  GpuCommand& command = LastSegment(steps).commands.emplace_back();
  command.args = {copy.to, copy.from};
  return OkStatus();
}

Status GpuExecutable::Add(const program::While& loop, GpuSteps& steps) {
  auto made = std::make_unique<GpuLoop>();
  KILN_ASSIGN_OR_RETURN(made->condition, Translate(loop.condition));
  made->predicate = loop.predicate;
  KILN_ASSIGN_OR_RETURN(made->body, Translate(loop.body));
  made->trips = loop.trips;
  steps.emplace_back(std::move(made));
  return OkStatus();
}

Status GpuExecutable::Add(const program::Conditional& conditional, GpuSteps& steps) {
  auto made = std::make_unique<GpuBranch>();
  made->index = conditional.index;
  made->by_predicate = conditional.by_predicate;
  for (const program::Steps& branch : conditional.branches) {
    KILN_ASSIGN_OR_RETURN(GpuSteps translated, Translate(branch));
    made->branches.push_back(std::move(translated));
  }
  steps.emplace_back(std::move(made));
  return OkStatus();
}

Status GpuExecutable::Add(const program::HostCall& call, GpuSteps& steps) {
  const CallSignature& signature = calls_.at(call.id).signature;
  GpuHostCall made;
  made.call = &call;
  int64_t end = 0;
  auto place = [&](int64_t bytes) {
    return std::exchange(
        end, end + (bytes + program::kAlignment - 1) / program::kAlignment * program::kAlignment);
  };
  for (size_t a = 0; a < call.args.size(); ++a) {
    const program::Slice& slice = call.args[a];
    // A result in an operand's memory shares it on the host, too.
    auto same = std::ranges::find(made.args, slice, &GpuHostCall::Argument::slice);
    GpuHostCall::Argument argument{slice,
                                   same != made.args.end() ? same->offset : place(slice.bytes)};
    argument.is_written = a >= signature.operands.size();
    argument.is_read = !argument.is_written && same == made.args.end();
    made.args.push_back(argument);
  }
  if (signature.scratch_bytes > 0) made.args.push_back({{}, place(signature.scratch_bytes)});
  host_.bytes = std::max(host_.bytes, end);
  steps.emplace_back(std::move(made));
  return OkStatus();
}

Status GpuExecutable::Run(std::span<const void* const> arguments, std::span<void* const> results,
                          const runtime::RunOptions& options) {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<runtime::Completion> completion,
                        Start(arguments, results, options));
  return completion->Wait();
}

Result<std::unique_ptr<runtime::Completion>> GpuExecutable::Start(
    std::span<const void* const> arguments, std::span<void* const> results,
    const runtime::RunOptions& options) {
  KILN_ASSIGN_OR_RETURN(GpuStream * own, device_.Stream());
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<GpuEvent> event, device_.machine().MakeEvent());
  std::unique_ptr<GpuStream> callers;
  if (options.stream) {
    KILN_ASSIGN_OR_RETURN(callers, device_.machine().WrapStream(options.stream));
  }
  std::unique_lock lock(mutex_), order(device_.order());
  if (callers) {
    // After all earlier work of the device; the event is reused below.
    KILN_RETURN_IF_ERROR(own->Record(*event));
    KILN_RETURN_IF_ERROR(callers->WaitFor(*event));
  }
  const program::Addresses& constants =
      options.binding ? options.binding->addresses() : constants_.addresses();
  Replay run{callers ? *callers : *own, constants, options, nullptr};
  if (options.trace) {
    run.recording = device_.timeline().Begin(*options.trace, run.stream, options.stream);
  }
  program::BindAllocations(program(), arguments, results, constants, arena_, run.addresses.data());
  Status status = run.stream.EndBy(options.cancel);
  if (status.ok() && options.begun) *options.begun = true;
  if (status.ok()) status = CopyAliases(arguments, results, run);
  if (status.ok()) {
    Result<bool> whole = LaunchWhole(run);
    status = whole.status();
    if (whole.ok() && !*whole) status = Enqueue(steps_, run);
  }
  if (Status all = run.stream.EndBy(nullptr); status.ok()) status = std::move(all);
  if (status.ok()) status = run.stream.Record(*event);
  // Later work of the device comes after the run.
  if (status.ok() && callers) status = own->WaitFor(*event);
  // Work in the stream still uses the run's memory.
  if (!status.ok()) (void)run.stream.Synchronise();
  order.unlock();
  lock.unlock();
  // The log callback may use the device.
  if (!run.note.empty()) device_.Note(run.note);
  KILN_RETURN_IF_ERROR(status);
  return std::unique_ptr<runtime::Completion>(
      std::make_unique<EventCompletion>(std::move(event), std::move(run.recording)));
}

Status GpuExecutable::CopyAliases(std::span<const void* const> arguments,
                                  std::span<void* const> results, Replay& run) {
  for (auto [result, argument] : aliases_) {
    if (results[result] == arguments[argument]) continue;
    int64_t bytes = program().signature.results[result].byte_size();
    if (bytes == 0) continue;
    KILN_RETURN_IF_ERROR(InTimeline(
        run.recording.get(), [&] { return DescribeCopy("copy", bytes); },
        [&] {
          return run.stream.Copy(static_cast<std::byte*>(results[result]),
                                 static_cast<const std::byte*>(arguments[argument]), bytes);
        }));
  }
  return OkStatus();
}

Result<bool> GpuExecutable::LaunchWhole(Replay& run) {
  // The device does not poll `cancel`.
  if (!may_be_whole_ || run.options.trace || run.options.cancel) return false;
  // A loop pays for its graph in the first run.
  if (whole_runs_++ == 0 && !has_loops_) return false;
  Status status = CommandBuffer::MakeOrMove(whole_, device_.machine(), steps_, run.addresses);
  if (status.ok()) status = run.stream.Launch(whole_->graph());
  if (status.ok()) return true;
  // Driven by the host, the same work needs fewer resources; if that fails too, its failure is
  // returned.
  whole_.reset();
  may_be_whole_ = false;
  run.note = Cat(program().name, ": loops and choices are driven from the host, as ",
                 device_.name(), " has no graph for them: ", status.message());
  return false;
}

Status GpuExecutable::Enqueue(GpuSteps& steps, Replay& run) {
  for (GpuStep& step : steps) {
    KILN_RETURN_IF_ERROR(
        std::visit(Overloaded{
                       [&](GpuSegment& segment) { return Enqueue(segment, run); },
                       [&](GpuHostCall& call) { return Enqueue(call, run); },
                       [&](std::unique_ptr<GpuLoop>& loop) { return Enqueue(*loop, run); },
                       [&](std::unique_ptr<GpuBranch>& branch) { return Enqueue(*branch, run); },
                   },
                   step));
  }
  return OkStatus();
}

Status GpuExecutable::Enqueue(GpuHostCall& call, Replay& run) {
  if (!host_.address) {
    KILN_ASSIGN_OR_RETURN(host_.address, device_.machine().AllocatePinned(host_.bytes));
  }
  auto copy = [&](const char* name, const GpuHostCall::Argument& arg, auto&& ask) {
    return arg.slice.bytes == 0
               ? OkStatus()
               : InTimeline(
                     run.recording.get(), [&] { return DescribeCopy(name, arg.slice.bytes); },
                     [&] {
                       return ask(host_.address + arg.offset, AddressOf(arg.slice, run.addresses));
                     });
  };
  std::vector<void*> args;
  for (const GpuHostCall::Argument& arg : call.args) {
    args.push_back(host_.address + arg.offset);
    if (!arg.is_read) continue;
    KILN_RETURN_IF_ERROR(copy("copy to host", arg, [&](std::byte* host, const std::byte* device) {
      return run.stream.CopyToHost(host, device, arg.slice.bytes);
    }));
  }
  KILN_RETURN_IF_ERROR(run.stream.Synchronise());
  KILN_RETURN_IF_ERROR(calls_.RunOnHost(program(), call.call->id, args.data(),
                                        device_.call_host().pool, run.options.threads,
                                        run.options.trace, run.probes));
  for (const GpuHostCall::Argument& arg : call.args) {
    if (!arg.is_written) continue;
    KILN_RETURN_IF_ERROR(copy("copy from host", arg, [&](const std::byte* host, std::byte* device) {
      return run.stream.CopyFromHost(device, host, arg.slice.bytes);
    }));
  }
  return OkStatus();
}

Status GpuExecutable::Enqueue(GpuSegment& segment, Replay& run) {
  bool first = segment.runs++ == 0;
  if (first || !segment.may_be_graph || segment.commands.size() < kLeastCommands ||
      (run.recording && !run.recording->shows_graphs())) {
    return EnqueueOneByOne(segment, run);
  }
  Status status =
      CommandBuffer::MakeOrMove(segment.graph, device_.machine(), segment, run.addresses);
  if (!status.ok()) {
    // Launched one by one, the same work needs fewer resources; if that fails too, its failure is
    // returned.
    segment.graph.reset();
    segment.may_be_graph = false;
    return EnqueueOneByOne(segment, run);
  }
  return InTimeline(
      run.recording.get(), [&] { return Describe(segment); },
      [&] { return run.stream.Launch(segment.graph->graph()); });
}

Status GpuExecutable::EnqueueOneByOne(GpuSegment& segment, Replay& run) {
  for (GpuCommand& command : segment.commands) {
    std::vector<GpuSpan> spans = SpansOf(command, run.addresses);
    KILN_RETURN_IF_ERROR(InTimeline(
        run.recording.get(), [&] { return Describe(command); },
        [&] { return EnqueueCommand(command, spans, run.stream); }));
  }
  return OkStatus();
}

Status GpuExecutable::EnqueueCommand(const GpuCommand& command, std::span<const GpuSpan> spans,
                                     GpuStream& stream) const {
  if (command.library) {
    std::vector<GpuSpan> args(spans.begin(), spans.end());
    if (command.library->workspace_bytes() > 0) args.push_back(workspace_);
    return stream.Launch(*command.library, args);
  }
  return command.kernel ? stream.Launch(*command.kernel, command.grid, spans)
                        : stream.Copy(spans[0].address, spans[1].address, spans[1].bytes);
}

Status GpuExecutable::Enqueue(GpuLoop& loop, Replay& run) {
  if (loop.trips >= 0 && !run.options.cancel) {
    for (int64_t trip = 0; trip < loop.trips; ++trip) {
      KILN_RETURN_IF_ERROR(Enqueue(loop.body, run));
    }
    return OkStatus();
  }
  // A cancellable run submits little ahead, so that cancellation is quick.
  while (true) {
    if (run.options.cancel && __atomic_load_n(run.options.cancel, __ATOMIC_RELAXED) != 0) {
      return Cancelled("the execution was cancelled");
    }
    KILN_RETURN_IF_ERROR(Enqueue(loop.condition, run));
    KILN_RETURN_IF_ERROR(Read(loop.predicate, run));
    if (*number_ == std::byte{0}) return OkStatus();
    KILN_RETURN_IF_ERROR(Enqueue(loop.body, run));
  }
}

Status GpuExecutable::Enqueue(GpuBranch& branch, Replay& run) {
  KILN_RETURN_IF_ERROR(Read(branch.index, run));
  size_t index = program::BranchAt(number_, branch.by_predicate, branch.branches.size());
  return Enqueue(branch.branches[index], run);
}

Status GpuExecutable::Read(const program::Slice& slice, Replay& run) {
  if (!number_) {
    KILN_ASSIGN_OR_RETURN(number_, device_.machine().AllocatePinned(kNumberBytes));
  }
  KILN_RETURN_IF_ERROR(InTimeline(
      run.recording.get(), [&] { return DescribeCopy("copy to host", slice.bytes); },
      [&] {
        return run.stream.CopyToHost(number_, AddressOf(slice, run.addresses), slice.bytes);
      }));
  return run.stream.Synchronise();
}

GpuWorkPtr GpuExecutable::Describe(GpuCommand& command) const {
  if (command.shown) return command.shown;
  if (command.kernel) {
    const program::LaunchInfo& info = program().launches[command.launch];
    command.shown = DescribeKernel(*command.kernel, command.grid, info);
  } else if (command.library) {
    const program::LaunchInfo& info = program().launches[command.launch];
    Result<std::string> library = device_.machine().GemmLibrary();
    command.shown = DescribeLibraryCall(library.ok() ? *library : "", info);
  } else {
    command.shown = DescribeCopy("copy", command.args[1].bytes);
  }
  return command.shown;
}

GpuWorkPtr GpuExecutable::Describe(GpuSegment& segment) const {
  if (segment.shown) return segment.shown;
  std::vector<GpuWorkPtr> parts;
  for (GpuCommand& command : segment.commands) parts.push_back(Describe(command));
  segment.shown = DescribeGraph(program().name, std::move(parts));
  return segment.shown;
}

}  // namespace kiln::device

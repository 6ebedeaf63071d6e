#include "device/gpu/executable.h"

#include "base/strings.h"
#include "device/gpu/resources.h"
#include "plan/calls.h"

namespace kiln::device {
namespace {

using plan::Allocation;

constexpr int64_t kNumberBytes = 8;

// A graph is worth its making from so many commands on.
constexpr size_t kLeastCommands = 2;

class EventCompletion : public runtime::Completion {
 public:
  EventCompletion(std::unique_ptr<GpuEvent> event, std::unique_ptr<GpuRecording> recording)
      : event_(std::move(event)), recording_(std::move(recording)) {}
  Status Wait() override {
    Status status = event_->Wait();
    // A wait that was refused is no end: whoever goes by it may free what the work still uses.
    if (!status.ok()) (void)event_->Wait();
    if (recording_) std::exchange(recording_, nullptr)->Show();
    return status;
  }

 private:
  std::unique_ptr<GpuEvent> event_;
  std::unique_ptr<GpuRecording> recording_;
};

// Asks for work, which `describe` describes, in the timeline where there is one.
template <typename Describe, typename Ask>
Status InTimeline(GpuRecording* recording, Describe describe, Ask ask) {
  return recording ? recording->Around(describe(), ask) : ask();
}

}  // namespace

GpuExecutable::GpuExecutable(std::shared_ptr<const plan::Artefact> artefact, GpuDevice& device)
    : artefact_(std::move(artefact)), device_(device) {
  const std::vector<int>& aliases = program().signature.aliases;
  for (size_t r = 0; r < aliases.size(); ++r) {
    if (aliases[r] >= 0) aliases_.push_back({r, static_cast<size_t>(aliases[r])});
  }
}

GpuExecutable::~GpuExecutable() {
  for (size_t i = 0; i < constants_.size(); ++i) {
    device_.Deallocate(constants_[i], program().allocations[i].bytes);
  }
  device_.Deallocate(arena_, program().arena_bytes);
  if (!number_ && modules_.empty()) return;
  // Code and pinned memory go at once: nothing may be using them.
  if (auto stream = device_.Stream(); stream.ok()) (void)(*stream)->Synchronise();
  if (number_) device_.machine().FreePinned(number_, kNumberBytes);
}

Result<std::unique_ptr<GpuExecutable>> GpuExecutable::Load(
    std::shared_ptr<const plan::Artefact> artefact, GpuDevice& device) {
  if (artefact->target.ToString() != device.target().ToString()) {
    return InvalidArgument("the artefact was compiled for ", artefact->target.ToString(), ", and ",
                           device.name(), " is ", device.target().ToString());
  }
  KILN_RETURN_IF_ERROR(plan::CheckNoCalls(artefact->program));
  std::unique_ptr<GpuExecutable> e(new GpuExecutable(std::move(artefact), device));
  KILN_RETURN_IF_ERROR(e->LoadCode());
  KILN_RETURN_IF_ERROR(e->LoadConstants());
  KILN_ASSIGN_OR_RETURN(e->steps_, e->Translate(e->program().steps));
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

Status GpuExecutable::LoadCode() {
  for (const std::string& code : artefact_->objects) {
    Result<std::unique_ptr<GpuModule>> module = device_.machine().Load(code);
    if (!module.ok()) return module.status().WithContext(program().name);
    modules_.push_back(*std::move(module));
  }
  return OkStatus();
}

Status GpuExecutable::LoadConstants() {
  const plan::Program& p = program();
  constants_.assign(p.allocations.size(), nullptr);
  for (size_t i = 0; i < p.allocations.size(); ++i) {
    const Allocation& a = p.allocations[i];
    if (a.kind == Allocation::Kind::kArena && a.bytes > 0) {
      KILN_ASSIGN_OR_RETURN(arena_, device_.Allocate(a.bytes));
    }
    if (a.kind != Allocation::Kind::kConstant) continue;
    KILN_ASSIGN_OR_RETURN(constants_[i], device_.Allocate(a.bytes));
    KILN_RETURN_IF_ERROR(
        device_.CopyFromHost(constants_[i], p.constants[a.number]->data(), a.bytes));
  }
  return OkStatus();
}

Result<GpuKernel*> GpuExecutable::FindKernel(const std::string& symbol) const {
  for (const auto& module : modules_) {
    Result<GpuKernel*> kernel = module->Find(symbol);
    if (kernel.ok() || kernel.status().code() != Code::kNotFound) return kernel;
  }
  return Internal(program().name, ": there is no code for ", symbol);
}

Status GpuExecutable::AddLaunch(const plan::Launch& launch, Segment& segment) {
  const plan::ScheduledKernel& kernel = program().kernels[static_cast<size_t>(launch.kernel)];
  for (size_t i = 0; i < kernel.gpu.launches.size(); ++i) {
    const kernel::GpuLaunch& grid = kernel.gpu.launches[i];
    Command& command = segment.commands.emplace_back();
    KILN_ASSIGN_OR_RETURN(command.kernel, FindKernel(plan::GpuSymbol(program(), launch.kernel, i)));
    command.grid = {grid.blocks, grid.threads, grid.shared_bytes};
    command.args = launch.args;
    command.launch = launch.id;
  }
  return OkStatus();
}

Result<GpuExecutable::Steps> GpuExecutable::Translate(const plan::Steps& steps) {
  Steps result;
  auto segment = [&]() -> Segment& {
    if (result.empty() || !std::holds_alternative<Segment>(result.back())) {
      result.emplace_back(Segment());
    }
    return std::get<Segment>(result.back());
  };
  for (const plan::Step& step : steps) {
    if (const auto* launch = std::get_if<plan::Launch>(&step.what)) {
      KILN_RETURN_IF_ERROR(AddLaunch(*launch, segment()));
    } else if (const auto* copy = std::get_if<plan::Copy>(&step.what)) {
      Command& command = segment().commands.emplace_back();
      command.args = {copy->to, copy->from};
    } else if (const auto* loop = std::get_if<plan::While>(&step.what)) {
      auto made = std::make_unique<Loop>();
      KILN_ASSIGN_OR_RETURN(made->condition, Translate(loop->condition));
      made->predicate = loop->predicate;
      KILN_ASSIGN_OR_RETURN(made->body, Translate(loop->body));
      result.emplace_back(std::move(made));
    } else if (const auto* conditional = std::get_if<plan::Conditional>(&step.what)) {
      auto made = std::make_unique<Branch>();
      made->index = conditional->index;
      made->by_predicate = conditional->by_predicate;
      for (const plan::Steps& branch : conditional->branches) {
        KILN_ASSIGN_OR_RETURN(Steps translated, Translate(branch));
        made->branches.push_back(std::move(translated));
      }
      result.emplace_back(std::move(made));
    } else {
      return Unimplemented(program().name, ": calls of library functions on ", device_.name());
    }
  }
  return result;
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
  std::lock_guard lock(mutex_);
  if (callers) {
    // After all that the device was asked for before; the event is used again below.
    KILN_RETURN_IF_ERROR(own->Record(*event));
    KILN_RETURN_IF_ERROR(callers->WaitFor(*event));
  }
  Replay run{callers ? *callers : *own, constants_, options, nullptr};
  if (options.trace) {
    run.recording = device_.timeline().Begin(*options.trace, run.stream, options.stream);
  }
  const plan::Program& p = program();
  for (size_t i = 0; i < run.addresses.size(); ++i) {
    const Allocation& a = p.allocations[i];
    switch (a.kind) {
      case Allocation::Kind::kParameter:
        run.addresses[i] =
            static_cast<std::byte*>(const_cast<void*>(arguments[static_cast<size_t>(a.number)]));
        break;
      case Allocation::Kind::kResult:
        run.addresses[i] = static_cast<std::byte*>(results[static_cast<size_t>(a.number)]);
        break;
      case Allocation::Kind::kConstant:
        break;
      case Allocation::Kind::kArena:
        run.addresses[i] = arena_;
        break;
    }
  }
  Status status = CopyAliases(arguments, results, run);
  if (status.ok()) status = Enqueue(steps_, run);
  if (status.ok()) status = run.stream.Record(*event);
  // What the device is asked for next comes after the run.
  if (status.ok() && callers) status = own->WaitFor(*event);
  if (!status.ok()) {
    // What is in the stream still uses the run's memory.
    (void)run.stream.Synchronise();
    return status;
  }
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

Status GpuExecutable::Enqueue(Steps& steps, Replay& run) {
  for (Step& step : steps) {
    if (auto* segment = std::get_if<Segment>(&step)) {
      KILN_RETURN_IF_ERROR(Enqueue(*segment, run));
    } else if (auto* loop = std::get_if<std::unique_ptr<Loop>>(&step)) {
      KILN_RETURN_IF_ERROR(Enqueue(**loop, run));
    } else {
      KILN_RETURN_IF_ERROR(Enqueue(*std::get<std::unique_ptr<Branch>>(step), run));
    }
  }
  return OkStatus();
}

Status GpuExecutable::Enqueue(Segment& segment, Replay& run) {
  bool first = segment.runs++ == 0;
  if (first || !segment.may_be_graph || segment.commands.size() < kLeastCommands ||
      (run.recording && !run.recording->shows_graphs())) {
    return EnqueueOneByOne(segment, run);
  }
  if (Status status = PrepareGraph(segment, run); !status.ok()) {
    // One by one the same work needs less of the machine; if it cannot be done that way either,
    // that failure is the one to tell.
    segment.graph.reset();
    segment.may_be_graph = false;
    return EnqueueOneByOne(segment, run);
  }
  return InTimeline(
      run.recording.get(), [&] { return Describe(segment); },
      [&] { return run.stream.Launch(*segment.graph); });
}

Status GpuExecutable::PrepareGraph(Segment& segment, const Replay& run) {
  if (!segment.graph) {
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<GpuGraph> graph, device_.machine().MakeGraph());
    for (const Command& command : segment.commands) {
      std::vector<GpuSpan> spans = SpansOf(command, run.addresses);
      Result<int> node = command.kernel
                             ? graph->AddLaunch(*command.kernel, command.grid, spans)
                             : graph->AddCopy(spans[0].address, spans[1].address, spans[1].bytes);
      if (!node.ok()) return node.status();
    }
    KILN_RETURN_IF_ERROR(graph->Finish());
    segment.graph = std::move(graph);
    segment.addresses = run.addresses;
    return OkStatus();
  }
  if (segment.addresses == run.addresses) return OkStatus();
  for (size_t i = 0; i < segment.commands.size(); ++i) {
    const Command& command = segment.commands[i];
    bool moved = false;
    for (const plan::Slice& s : command.args) {
      auto a = static_cast<size_t>(s.allocation);
      moved |= segment.addresses[a] != run.addresses[a];
    }
    if (!moved) continue;
    std::vector<GpuSpan> spans = SpansOf(command, run.addresses);
    int node = static_cast<int>(i);
    KILN_RETURN_IF_ERROR(command.kernel
                             ? segment.graph->SetLaunch(node, spans)
                             : segment.graph->SetCopy(node, spans[0].address, spans[1].address));
  }
  segment.addresses = run.addresses;
  return OkStatus();
}

Status GpuExecutable::EnqueueOneByOne(Segment& segment, Replay& run) {
  for (Command& command : segment.commands) {
    std::vector<GpuSpan> spans = SpansOf(command, run.addresses);
    KILN_RETURN_IF_ERROR(InTimeline(
        run.recording.get(), [&] { return Describe(command); },
        [&] {
          return command.kernel
                     ? run.stream.Launch(*command.kernel, command.grid, spans)
                     : run.stream.Copy(spans[0].address, spans[1].address, spans[1].bytes);
        }));
  }
  return OkStatus();
}

Status GpuExecutable::Enqueue(Loop& loop, Replay& run) {
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

Status GpuExecutable::Enqueue(Branch& branch, Replay& run) {
  KILN_RETURN_IF_ERROR(Read(branch.index, run));
  size_t index = plan::BranchAt(number_, branch.by_predicate, branch.branches.size());
  return Enqueue(branch.branches[index], run);
}

Status GpuExecutable::Read(const plan::Slice& slice, Replay& run) {
  if (!number_) {
    KILN_ASSIGN_OR_RETURN(number_, device_.machine().AllocatePinned(kNumberBytes));
  }
  const std::byte* from = run.addresses[static_cast<size_t>(slice.allocation)] + slice.offset;
  KILN_RETURN_IF_ERROR(InTimeline(
      run.recording.get(), [&] { return DescribeCopy("copy to host", slice.bytes); },
      [&] { return run.stream.CopyToHost(number_, from, slice.bytes); }));
  return run.stream.Synchronise();
}

std::vector<GpuSpan> GpuExecutable::SpansOf(const Command& command,
                                            const std::vector<std::byte*>& addresses) {
  std::vector<GpuSpan> spans;
  spans.reserve(command.args.size());
  for (const plan::Slice& s : command.args) {
    spans.push_back({addresses[static_cast<size_t>(s.allocation)] + s.offset, s.bytes});
  }
  return spans;
}

GpuWorkPtr GpuExecutable::Describe(Command& command) const {
  if (command.shown) return command.shown;
  if (command.kernel) {
    const plan::LaunchInfo& info = program().launches[static_cast<size_t>(command.launch)];
    command.shown = DescribeKernel(*command.kernel, command.grid, info);
  } else {
    command.shown = DescribeCopy("copy", command.args[1].bytes);
  }
  return command.shown;
}

GpuWorkPtr GpuExecutable::Describe(Segment& segment) const {
  if (segment.shown) return segment.shown;
  std::vector<GpuWorkPtr> parts;
  for (Command& command : segment.commands) parts.push_back(Describe(command));
  segment.shown = DescribeGraph(program().name, std::move(parts));
  return segment.shown;
}

}  // namespace kiln::device

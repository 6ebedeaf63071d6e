#include "device/emulated/stream.h"

#include <cstring>
#include <new>
#include <utility>

#include "base/overloaded.h"
#include "base/strings.h"
#include "base/trace.h"
#include "program/program.h"

namespace kiln::device {
namespace {

EmulatedLaunch MakeLaunch(const GpuKernel& kernel, const GpuGrid& grid,
                          std::span<const GpuSpan> args) {
  const auto& k = static_cast<const EmulatedGpuKernel&>(kernel);
  return {k.code, k.kernel, grid, {args.begin(), args.end()}};
}

}  // namespace

Result<GpuKernel*> EmulatedGpuModule::Find(const std::string& symbol) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = kernels_.find(symbol);
  if (found == kernels_.end()) {
    KILN_ASSIGN_OR_RETURN(const EmulatedKernel* kernel, code_->Find(symbol));
    found = kernels_.emplace(symbol, std::make_unique<EmulatedGpuKernel>(code_, kernel)).first;
  }
  return found->second.get();
}

// --- The work of a stream

void EmulatedStreamState::Add(EmulatedWork work) {
  waiting.push_back(std::move(work));
  if (waiting.size() > machine.options_.most_waiting) Finish(end());
}

void EmulatedStreamState::Finish(uint64_t position) {
  while (done < position) DoOne();
}

void EmulatedStreamState::DoOne() {
  EmulatedWork work = std::move(waiting.front());
  waiting.pop_front();
  Status status;
  try {
    status = std::visit([&](const auto& w) { return Do(w); }, work);
  } catch (const std::bad_alloc&) {
    status = ResourceExhausted("no memory of the host for the emulated GPU");
  }
  // Later failures are not reported: they may be consequences.
  if (failure.ok()) failure = std::move(status);
  ++done;
}

Status EmulatedStreamState::Do(const EmulatedLaunch& launch) {
  for (size_t i = 0; i < launch.args.size(); ++i) {
    KILN_RETURN_IF_ERROR(
        machine.CheckInside(launch.args[i].address, launch.args[i].bytes,
                            Cat("parameter ", i, " of kernel ", launch.kernel->name)));
  }
  return machine.emulator_.Run(*launch.kernel, launch.grid, launch.args, cancel);
}

Status EmulatedStreamState::Do(const EmulatedCopy& copy) {
  auto size = static_cast<size_t>(copy.bytes);
  if (copy.kind != EmulatedCopy::Kind::kFromHost) {
    KILN_RETURN_IF_ERROR(machine.CheckInside(static_cast<const std::byte*>(copy.from), copy.bytes,
                                             "the source of a copy"));
  }
  if (copy.kind != EmulatedCopy::Kind::kToHost) {
    KILN_RETURN_IF_ERROR(machine.CheckInside(static_cast<std::byte*>(copy.to), copy.bytes,
                                             "the destination of a copy"));
  }
  if (size > 0) std::memmove(copy.to, copy.from, size);
  return OkStatus();
}

Status EmulatedStreamState::Do(const EmulatedFill& fill) {
  KILN_RETURN_IF_ERROR(machine.CheckInside(fill.to, fill.bytes, "what is filled"));
  if (fill.bytes > 0) std::memset(fill.to, fill.value, static_cast<size_t>(fill.bytes));
  return OkStatus();
}

Status EmulatedStreamState::Do(const EmulatedFree& free) {
  if (machine.memory_.count(free.memory) == 0) {
    return Internal("memory of the emulated GPU is freed that is not allocated");
  }
  machine.Release(free.memory);
  return OkStatus();
}

// Waits are for earlier work, so streams never wait in a cycle.
Status EmulatedStreamState::Do(const EmulatedWait& wait) {
  wait.stream->Finish(wait.position);
  return OkStatus();
}

Status EmulatedStreamState::Do(const EmulatedMark& mark) {
  if (mark.point->timed) {
    mark.point->time_ns = TraceSink::Now();
  } else {
    mark.point->failure = std::exchange(failure, OkStatus());
  }
  return OkStatus();
}

Status EmulatedStreamState::Do(const EmulatedCancel& by) {
  cancel = by.flag;
  return OkStatus();
}

Status EmulatedStreamState::Do(const std::shared_ptr<const EmulatedNodes>& nodes) {
  for (size_t at = 0; at < nodes->size();) {
    KILN_ASSIGN_OR_RETURN(at, std::visit([&](const auto& n) { return Step(n, at); }, (*nodes)[at]));
  }
  return OkStatus();
}

Result<size_t> EmulatedStreamState::Step(const EmulatedLaunch& launch, size_t at) {
  KILN_RETURN_IF_ERROR(Do(launch));
  return at + 1;
}

Result<size_t> EmulatedStreamState::Step(const EmulatedCopy& copy, size_t at) {
  KILN_RETURN_IF_ERROR(Do(copy));
  return at + 1;
}

Result<size_t> EmulatedStreamState::Step(const EmulatedWhile& loop, size_t at) {
  KILN_RETURN_IF_ERROR(machine.CheckInside(loop.predicate, 1, "the predicate of a loop"));
  return *loop.predicate != std::byte{0} ? at + 1 : loop.end;
}

Result<size_t> EmulatedStreamState::Step(const EmulatedBranches& choice, size_t) {
  KILN_RETURN_IF_ERROR(
      machine.CheckInside(choice.index, choice.by_predicate ? 1 : 4, "the index of a choice"));
  return choice
      .branches[program::BranchAt(choice.index, choice.by_predicate, choice.branches.size())];
}

Result<size_t> EmulatedStreamState::Step(const EmulatedJump& jump, size_t) { return jump.to; }

// --- Streams

EmulatedStream::~EmulatedStream() {
  std::lock_guard<std::mutex> lock(machine_.mutex_);
  state_->Finish(state_->end());
}

Status EmulatedStream::Add(EmulatedWork work) {
  std::lock_guard<std::mutex> lock(machine_.mutex_);
  state_->Add(std::move(work));
  return OkStatus();
}

Status EmulatedStream::Launch(GpuKernel& kernel, const GpuGrid& grid,
                              std::span<const GpuSpan> args) {
  KILN_RETURN_IF_ERROR(machine_.CheckLaunch(kernel, grid, args));
  return Add(MakeLaunch(kernel, grid, args));
}

Status EmulatedStream::Launch(GpuGraph& graph) {
  auto& g = static_cast<EmulatedGraph&>(graph);
  if (!g.finished_) return FailedPrecondition("a graph is launched that is not finished");
  return Add(std::shared_ptr<const EmulatedNodes>(g.nodes_));
}

Status EmulatedStream::EndBy(const int32_t* cancel) { return Add(EmulatedCancel{cancel}); }

Status EmulatedStream::Copy(std::byte* to, const std::byte* from, int64_t bytes) {
  return Add(EmulatedCopy{EmulatedCopy::Kind::kWithin, to, from, bytes});
}

Status EmulatedStream::CopyFromHost(std::byte* to, const void* from, int64_t bytes) {
  return Add(EmulatedCopy{EmulatedCopy::Kind::kFromHost, to, from, bytes});
}

Status EmulatedStream::CopyToHost(void* to, const std::byte* from, int64_t bytes) {
  return Add(EmulatedCopy{EmulatedCopy::Kind::kToHost, to, from, bytes});
}

Status EmulatedStream::Fill(std::byte* to, uint8_t value, int64_t bytes) {
  return Add(EmulatedFill{to, value, bytes});
}

Status EmulatedStream::Record(GpuEvent& event) {
  auto& e = static_cast<EmulatedEvent&>(event);
  std::lock_guard<std::mutex> lock(machine_.mutex_);
  e.stream_ = state_;
  e.point_ = std::make_shared<EmulatedPoint>();
  e.point_->timed = e.timed_;
  e.position_ = state_->end() + 1;
  state_->Add(EmulatedMark{e.point_});
  return OkStatus();
}

Status EmulatedStream::WaitFor(GpuEvent& event) {
  auto& e = static_cast<EmulatedEvent&>(event);
  std::lock_guard<std::mutex> lock(machine_.mutex_);
  // Within a stream all is in order.
  if (e.stream_ && e.stream_ != state_) state_->Add(EmulatedWait{e.stream_, e.position_});
  return OkStatus();
}

Status EmulatedStream::Synchronise() {
  std::lock_guard<std::mutex> lock(machine_.mutex_);
  state_->Finish(state_->end());
  return std::exchange(state_->failure, OkStatus());
}

// --- Events

Result<bool> EmulatedEvent::IsDone() {
  std::lock_guard<std::mutex> lock(machine_.mutex_);
  if (!stream_ || stream_->done >= position_) return true;
  stream_->DoOne();
  return stream_->done >= position_;
}

Status EmulatedEvent::Wait() {
  std::lock_guard<std::mutex> lock(machine_.mutex_);
  if (!stream_) return OkStatus();
  stream_->Finish(position_);
  return point_->failure;
}

// --- Graphs

Result<int> EmulatedGraph::Add(EmulatedNode node) {
  if (finished_) return FailedPrecondition("a node is added to a graph that is finished");
  nodes_->push_back(std::move(node));
  return static_cast<int>(nodes_->size()) - 1;
}

Result<int> EmulatedGraph::AddLaunch(GpuKernel& kernel, const GpuGrid& grid,
                                     std::span<const GpuSpan> args) {
  KILN_RETURN_IF_ERROR(machine_.CheckLaunch(kernel, grid, args));
  return Add(MakeLaunch(kernel, grid, args));
}

Result<int> EmulatedGraph::AddCopy(std::byte* to, const std::byte* from, int64_t bytes) {
  return Add(EmulatedCopy{EmulatedCopy::Kind::kWithin, to, from, bytes});
}

Result<int> EmulatedGraph::BeginWhile(const std::byte* predicate) {
  KILN_ASSIGN_OR_RETURN(int node, Add(EmulatedWhile{predicate, 0}));
  open_.BeginWhile(node);
  return node;
}

Result<int> EmulatedGraph::BeginBranches(const std::byte* index, bool by_predicate, int branches) {
  KILN_ASSIGN_OR_RETURN(int node, Add(EmulatedBranches{index, by_predicate, {}}));
  KILN_RETURN_IF_ERROR(open_.BeginBranches(node, by_predicate, branches));
  std::get<EmulatedBranches>((*nodes_)[static_cast<size_t>(node)]).branches = {nodes_->size()};
  return node;
}

Status EmulatedGraph::NextBranch() {
  KILN_ASSIGN_OR_RETURN(OpenBodies::Body body, open_.Next());
  KILN_RETURN_IF_ERROR(Add(EmulatedJump{}).status());
  auto& choice = std::get<EmulatedBranches>((*nodes_)[static_cast<size_t>(body.node)]);
  choice.branches.push_back(nodes_->size());
  return OkStatus();
}

Status EmulatedGraph::End() {
  KILN_ASSIGN_OR_RETURN(OpenBodies::Body body, open_.End());
  auto node = static_cast<size_t>(body.node);
  KILN_RETURN_IF_ERROR(Add(EmulatedJump{node}).status());
  const size_t behind = nodes_->size();
  auto cannot_be_open = [&] { return Internal("node ", node, " of a graph is no loop or choice"); };
  return std::visit(Overloaded{
                        [&](EmulatedWhile& loop) {
                          loop.end = behind;
                          return OkStatus();
                        },
                        [&](const EmulatedBranches& choice) {
                          // Each branch ends with a jump to behind the last one.
                          std::vector<size_t> ends(choice.branches.begin() + 1,
                                                   choice.branches.end());
                          ends.push_back(behind);
                          for (size_t end : ends)
                            std::get<EmulatedJump>((*nodes_)[end - 1]).to = behind;
                          return OkStatus();
                        },
                        [&](const EmulatedLaunch&) { return cannot_be_open(); },
                        [&](const EmulatedCopy&) { return cannot_be_open(); },
                        [&](const EmulatedJump&) { return cannot_be_open(); },
                    },
                    (*nodes_)[node]);
}

Status EmulatedGraph::Finish() {
  if (finished_) return FailedPrecondition("a graph is finished twice");
  KILN_RETURN_IF_ERROR(open_.CheckNone());
  finished_ = true;
  return OkStatus();
}

Result<EmulatedNode*> EmulatedGraph::NodeToChange(int node) {
  if (!finished_) return FailedPrecondition("a node is changed of a graph that is not finished");
  if (node < 0 || node >= static_cast<int>(nodes_->size())) {
    return InvalidArgument("node ", node, " of a graph with ", nodes_->size());
  }
  // Launches release theirs under the machine's mutex.
  std::lock_guard<std::mutex> lock(machine_.mutex_);
  if (nodes_.use_count() > 1) nodes_ = std::make_shared<EmulatedNodes>(*nodes_);
  return &(*nodes_)[static_cast<size_t>(node)];
}

Status EmulatedGraph::SetLaunch(int node, std::span<const GpuSpan> args) {
  KILN_ASSIGN_OR_RETURN(EmulatedNode * n, NodeToChange(node));
  auto* launch = std::get_if<EmulatedLaunch>(n);
  if (!launch) return InvalidArgument("node ", node, " of a graph is no launch");
  if (launch->args.size() != args.size()) {
    return InvalidArgument("kernel ", launch->kernel->name, " has ", launch->args.size(),
                           " parameters, but ", args.size(), " were given");
  }
  launch->args.assign(args.begin(), args.end());
  return OkStatus();
}

Status EmulatedGraph::SetCopy(int node, std::byte* to, const std::byte* from) {
  KILN_ASSIGN_OR_RETURN(EmulatedNode * n, NodeToChange(node));
  auto* copy = std::get_if<EmulatedCopy>(n);
  if (!copy) return InvalidArgument("node ", node, " of a graph is no copy");
  copy->to = to;
  copy->from = from;
  return OkStatus();
}

Status EmulatedGraph::SetCondition(int node, const std::byte* address) {
  KILN_ASSIGN_OR_RETURN(EmulatedNode * n, NodeToChange(node));
  const std::byte** condition =
      std::visit(Overloaded{
                     [](EmulatedWhile& loop) { return &loop.predicate; },
                     [](EmulatedBranches& choice) { return &choice.index; },
                     [](EmulatedLaunch&) -> const std::byte** { return nullptr; },
                     [](EmulatedCopy&) -> const std::byte** { return nullptr; },
                     [](EmulatedJump&) -> const std::byte** { return nullptr; },
                 },
                 *n);
  if (!condition) return InvalidArgument("node ", node, " of a graph is no loop or choice");
  *condition = address;
  return OkStatus();
}

}  // namespace kiln::device

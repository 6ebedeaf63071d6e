#include "device/emulated/stream.h"

#include <cstring>
#include <new>
#include <utility>

#include "base/strings.h"
#include "base/trace.h"

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
  // The others are told no more: they may be consequences.
  if (failure.ok()) failure = std::move(status);
  ++done;
}

Status EmulatedStreamState::Do(const EmulatedLaunch& launch) {
  for (size_t i = 0; i < launch.args.size(); ++i) {
    KILN_RETURN_IF_ERROR(
        machine.CheckInside(launch.args[i].address, launch.args[i].bytes,
                            Cat("parameter ", i, " of kernel ", launch.kernel->name)));
  }
  return machine.emulator_.Run(*launch.kernel, launch.grid, launch.args);
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

// Waits are for what came before them, so that streams never wait in a circle.
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

Status EmulatedStreamState::Do(const std::shared_ptr<const EmulatedNodes>& nodes) {
  for (const EmulatedNode& node : *nodes) {
    KILN_RETURN_IF_ERROR(std::visit([&](const auto& n) { return Do(n); }, node));
  }
  return OkStatus();
}

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

Result<int> EmulatedGraph::AddLaunch(GpuKernel& kernel, const GpuGrid& grid,
                                     std::span<const GpuSpan> args) {
  if (finished_) return FailedPrecondition("a node is added to a graph that is finished");
  KILN_RETURN_IF_ERROR(machine_.CheckLaunch(kernel, grid, args));
  nodes_->push_back(MakeLaunch(kernel, grid, args));
  return static_cast<int>(nodes_->size()) - 1;
}

Result<int> EmulatedGraph::AddCopy(std::byte* to, const std::byte* from, int64_t bytes) {
  if (finished_) return FailedPrecondition("a node is added to a graph that is finished");
  nodes_->push_back(EmulatedCopy{EmulatedCopy::Kind::kWithin, to, from, bytes});
  return static_cast<int>(nodes_->size()) - 1;
}

Status EmulatedGraph::Finish() {
  if (finished_) return FailedPrecondition("a graph is finished twice");
  finished_ = true;
  return OkStatus();
}

Result<EmulatedNode*> EmulatedGraph::NodeToChange(int node) {
  if (!finished_) return FailedPrecondition("a node is changed of a graph that is not finished");
  if (node < 0 || node >= static_cast<int>(nodes_->size())) {
    return InvalidArgument("node ", node, " of a graph with ", nodes_->size());
  }
  // Launches let go of theirs under the machine's mutex.
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

}  // namespace kiln::device

#include "client/execution.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/exception.h"
#include "base/short_list.h"
#include "client/dependencies.h"

namespace kiln::client {
namespace {

// Aligned memory in place of a misaligned buffer's, for one run.
class Staging {
 public:
  explicit Staging(runtime::Allocator& allocator) : allocator_(allocator) {}
  ~Staging() {
    for (const Copy& copy : copies_) allocator_.Deallocate(copy.memory, copy.bytes);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  static bool IsNeededFor(const Buffer& buffer, int64_t alignment) {
    const auto address = reinterpret_cast<uintptr_t>(buffer.data());
    return address % static_cast<uintptr_t>(alignment) != 0 && buffer.bytes() != 0;
  }
  // The address of the buffer's elements for the run.
  Result<std::byte*> MemoryOf(const Buffer& buffer, bool is_result) {
    copies_.reserve(copies_.size() + 1);
    KILN_ASSIGN_OR_RETURN(std::byte * memory, allocator_.Allocate(buffer.bytes()));
    copies_.push_back({memory, buffer.data(), buffer.bytes(), is_result});
    if (!is_result) std::memcpy(memory, buffer.data(), static_cast<size_t>(buffer.bytes()));
    return memory;
  }
  void CopyResults() const {
    for (const Copy& copy : copies_) {
      if (copy.is_result) {
        std::memcpy(copy.home, copy.memory, static_cast<size_t>(copy.bytes));
      }
    }
  }

 private:
  struct Copy {
    std::byte* memory;
    std::byte* home;
    int64_t bytes;
    bool is_result;
  };
  runtime::Allocator& allocator_;
  std::vector<Copy> copies_;
};

bool IsCancelled(const ExecuteOptions& options) {
  return options.cancel && __atomic_load_n(options.cancel, __ATOMIC_RELAXED) != 0;
}

}  // namespace

Status Execution::Claim(bool pins) {
  size_t donated = 0;
  auto fail = [&](size_t argument) {
    Unpin();
    for (size_t k = 0; k < donated; ++k) {
      if (IsDonated(k)) buffers_[k]->Undonate();
    }
    return FailedPrecondition("'", executable_->name(), "': argument ", argument,
                              buffers_[argument]->is_frozen()
                                  ? " is donated, and bound as a frozen argument"
                                  : " has been donated to an execution");
  };
  for (; donated < options_.donated.size(); ++donated) {
    if (IsDonated(donated) && !buffers_[donated]->Donate()) return fail(donated);
  }
  // The others afterwards: of two executions that take each other's arguments one fails, and none
  // waits for the other.
  for (size_t i = 0; pins && i < argument_count_; ++i) {
    if (buffers_[i] && !IsDonated(i) && !buffers_[i]->Pin()) return fail(i);
    pinned_ = i + 1;
  }
  for (size_t i = 0; i < donated; ++i) {
    if (IsDonated(i)) buffers_[i]->WaitForPins();
  }
  return OkStatus();
}

void Execution::Unpin() noexcept {
  if (buffers_.empty()) return;  // moved from
  while (pinned_ > 0) {
    if (--pinned_; buffers_[pinned_] && !IsDonated(pinned_)) buffers_[pinned_]->Unpin();
  }
}

bool Execution::IsFree() const {
  return std::ranges::none_of(buffers_, [](const Ref<Buffer>& b) { return b && b->is_in_use(); });
}

void Execution::WaitForStarts() const {
  std::vector<Ref<Event>> before;
  for (size_t i = 0; i < argument_count_; ++i) {
    if (!buffers_[i]) continue;
    if (IsDonated(i)) buffers_[i]->AppendUses(before);
    if (Ref<Event> value = buffers_[i]->value()) before.push_back(std::move(value));
  }
  for (const Ref<Buffer>& result : results()) result->AppendUses(before);
  for (const Ref<Event>& event : before) event->WaitForStart(&executable_->device().queue());
}

Status Execution::WaitForBuffers() const {
  Status first;
  for (const Ref<Buffer>& argument : arguments()) {
    if (!argument) continue;
    Status status = argument->WaitForValue();
    if (first.ok()) first = std::move(status);
  }
  for (const Ref<Buffer>& result : results()) result->WaitForUses();
  WaitForDonated();
  return first;
}

void Execution::WaitForDonated() const {
  for (size_t i = 0; i < options_.donated.size(); ++i) {
    if (options_.donated[i]) buffers_[i]->WaitForUses();
  }
}

class Execution::Running {
 public:
  explicit Running(const Execution& run)
      : run_(run),
        staging_(run.executable_->device().client().allocator()),
        trace_(run.options_.TraceOf(run.executable_->device().client())) {}

  // Memory in use is not freed.
  ~Running() {
    if (completion_) (void)completion_->Wait();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  // After the arguments' values are ready, or submitted to the device before this.
  Status Start() {
    if (IsCancelled(run_.options_)) {
      return Cancelled("'", run_.executable_->name(), "' was cancelled");
    }
    ShortList<const void*, 16> in;
    ShortList<void*, 16> out;
    for (const Ref<Buffer>& argument : run_.arguments()) {
      if (!argument) {
        in.push_back(run_.frozen_->address(in.size()));
        continue;
      }
      std::byte* memory = argument->data();
      if (Staging::IsNeededFor(*argument, run_.executable_->argument_alignment(in.size()))) {
        KILN_ASSIGN_OR_RETURN(memory, staging_.MemoryOf(*argument, false));
      }
      in.push_back(memory);
    }
    for (const Ref<Buffer>& result : run_.results()) {
      KILN_ASSIGN_OR_RETURN(std::byte * memory, result->Materialise());
      if (Staging::IsNeededFor(*result, program::kAlignment)) {
        KILN_ASSIGN_OR_RETURN(memory, staging_.MemoryOf(*result, true));
      }
      out.push_back(memory);
    }
    start_ = trace_ ? TraceSink::Now() : 0;
    runtime::RunOptions options{.threads = run_.options_.threads,
                                .trace = sink(),
                                .cancel = run_.options_.begun ? nullptr : run_.options_.cancel,
                                .begun = run_.options_.begun,
                                .stream = run_.options_.stream,
                                .binding = run_.frozen_ ? run_.frozen_->binding() : nullptr};
    KILN_ASSIGN_OR_RETURN(completion_,
                          run_.executable_->Start(std::span(in.data(), in.size()),
                                                  std::span(out.data(), out.size()), options));
    return OkStatus();
  }
  bool goes_on() const { return completion_ != nullptr; }

  Status Finish() {
    if (completion_) KILN_RETURN_IF_ERROR(std::exchange(completion_, nullptr)->Wait());
    if (trace_) {
      sink()->Add({run_.executable_->name(),
                   "execute",
                   start_,
                   TraceSink::Now() - start_,
                   TraceSink::LaneOfThisThread(),
                   {}});
    }
    staging_.CopyResults();
    return OkStatus();
  }

 private:
  // Of the device; null without a trace.
  TraceSink* sink() const {
    return trace_ ? &trace_->ForDevice(run_.executable_->device().name()) : nullptr;
  }

  const Execution& run_;
  Staging staging_;
  std::shared_ptr<TraceSink> trace_;
  int64_t start_ = 0;
  std::unique_ptr<runtime::Completion> completion_;
};

Status Execution::RunToEnd() const {
  Running running(*this);
  KILN_RETURN_IF_ERROR(running.Start());
  KILN_RETURN_IF_ERROR(running.Finish());
  for (const Ref<Buffer>& result : results()) result->SetWritten();
  return OkStatus();
}

Status Execution::RunNow() {
  KILN_RETURN_IF_ERROR(WaitForBuffers());
  // A function of the user may itself donate what its caller reads, and must not wait for that.
  KILN_RETURN_IF_ERROR(Claim(!executable_->calls_users_functions()));
  WaitForDonated();
  Status status = RunToEnd();
  Unpin();
  return Explain(std::move(status));
}

Ref<Event> Execution::RunHere() {
  auto event = MakeRef<Event>(executable_->device().client());
  Status status = Try([&]() -> Status {
    // All earlier work is over: some of it may have failed.
    for (const Ref<Buffer>& argument : arguments()) {
      Ref<Event> value = argument ? argument->value() : Ref<Event>();
      if (value) KILN_RETURN_IF_ERROR(value->Wait());
    }
    return Explain(RunToEnd());
  });
  if (!status.ok()) {
    for (const Ref<Buffer>& result : results()) {
      result->PrepareUse();
      result->AddUse(event, true);
    }
  }
  event->Finish(std::move(status));
  return event;
}

// A run in the queue. The event outlives the rest, and keeps the client alive.
class Execution::QueuedRun : public Queue::Job {
 public:
  QueuedRun(Execution run, Ref<Event> event)
      : event_(std::move(event)),
        run_(std::move(run)),
        dependencies_(run_->executable_->device().queue()) {
    for (size_t i = 0; i < run_->argument_count_; ++i) {
      if (!run_->buffers_[i]) continue;
      dependencies_.Read(*run_->buffers_[i]);
      if (run_->IsDonated(i)) dependencies_.Write(*run_->buffers_[i]);
      run_->buffers_[i]->PrepareUse();
    }
    for (const Ref<Buffer>& result : run_->results()) {
      dependencies_.Write(*result);
      result->PrepareUse();
    }
  }

  // From now on the buffers wait for this run.
  void Announce() {
    for (const Ref<Buffer>& argument : run_->arguments()) {
      if (argument) argument->AddUse(event_, false);
    }
    for (const Ref<Buffer>& result : run_->results()) result->AddUse(event_, true);
    run_->Unpin();
  }

  // Before the run's turn in the queue, which then waits for the end only.
  Status StartNow() noexcept {
    Status status = Try([&]() -> Status {
      KILN_RETURN_IF_ERROR(dependencies_.Start());
      running_.emplace(*run_);
      KILN_RETURN_IF_ERROR(running_->Start());
      return running_->goes_on() ? OkStatus() : running_->Finish();
    });
    if (status.ok() && running_->goes_on()) event_->SetStarted();
    return status;
  }

  Ref<Event> Blocker() noexcept override {
    return running_ ? Ref<Event>() : dependencies_.Blocker();
  }

  bool Run() noexcept override {
    Status status = running_ ? OkStatus() : StartNow();
    if (status.ok() && running_->goes_on()) return true;
    End(std::move(status));
    return false;
  }

  void Finish() noexcept override {
    End(Try([&]() -> Status {
      Status own = running_->Finish();
      // Earlier work has ended: the result of a failed input is invalid.
      KILN_RETURN_IF_ERROR(dependencies_.Finish());
      return own;
    }));
  }

 private:
  void End(Status status) noexcept {
    status = run_->Explain(std::move(status));
    // Everything is released before the event is ready.
    running_.reset();
    dependencies_.Clear();
    run_.reset();
    event_->Finish(std::move(status));
  }

  Ref<Event> event_;
  std::optional<Execution> run_;
  Dependencies dependencies_;
  std::optional<Running> running_;
};

Result<Ref<Event>> Execution::Start() && {
  Device& device = executable_->device();
  Client& client = device.client();
  const bool on_stream = options_.stream != nullptr;
  const bool calls_here =
      executable_->calls_users_functions() && !client.callbacks_from_any_thread();
  // A failure of an argument's definition is the run's failure, reported by its event.
  if (calls_here) (void)WaitForBuffers();
  if (on_stream) WaitForStarts();
  KILN_RETURN_IF_ERROR(Claim(true));
  if (executable_->is_small() && device.queue().IsIdle() && IsFree()) {
    Ref<Event> event = RunHere();
    Unpin();
    return event;
  }
  const Queue::Order order =
      executable_->calls_users_functions() ? Queue::Order::kStrict : Queue::Order::kLast;
  auto event = MakeRef<Event>(client, &device.queue());
  auto run = std::make_unique<QueuedRun>(std::move(*this), event);
  if (!client.runs_asynchronously() || calls_here) {
    run->Announce();
    if (run->Run()) run->Finish();
    return event;
  }
  if (on_stream) KILN_RETURN_IF_ERROR(run->StartNow());
  // Announced and queued together: a thread that finds the buffers in use finds the run in the
  // queue.
  QueuedRun& announced = *run;
  device.queue().Push(std::move(run), order, [&] { announced.Announce(); });
  return event;
}

}  // namespace kiln::client

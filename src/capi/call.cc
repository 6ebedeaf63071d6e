#include "capi/call.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/short_list.h"
#include "base/strings.h"
#include "capi/error.h"
#include "capi/options.h"

namespace kiln::capi {
namespace {

// Aligned memory in the place of a buffer's that is not, for one run.
class Staging {
 public:
  explicit Staging(runtime::Allocator& allocator) : allocator_(allocator) {}
  ~Staging() {
    for (const Copy& copy : copies_) allocator_.Deallocate(copy.memory, copy.bytes);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Where the run finds the buffer's elements, or leaves them, at a multiple of `alignment`.
  Result<std::byte*> MemoryOf(const kiln_buffer& buffer, bool is_result, int64_t alignment) {
    const auto address = reinterpret_cast<uintptr_t>(buffer.data());
    if (address % static_cast<uintptr_t>(alignment) == 0 || buffer.bytes() == 0) {
      return buffer.data();
    }
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

bool IsCancelled(const kiln_execute_options& options) {
  return options.cancel && __atomic_load_n(options.cancel, __ATOMIC_RELAXED) != 0;
}

Status CheckCount(std::string_view what, const Callee& callee, size_t given, size_t expected,
                  const void* list) {
  if (given != expected) {
    return InvalidArgument("'", callee.name(), "': ", given, " ", what, "s are given; expected ",
                           expected);
  }
  if (!list && given > 0) {
    return InvalidArgument("'", callee.name(), "': the list of ", what, "s is NULL");
  }
  return OkStatus();
}

Status CheckOptions(const kiln_execute_options& options, const Callee& callee) {
  if (options.stream && !callee.takes_streams()) {
    return InvalidArgument("kiln_execute_options.stream is set; '", callee.name(), "' runs on ",
                           callee.device().name(),
                           ", and only executables on GPUs of the CUDA driver take a stream");
  }
  if (options.threads < 0) {
    return InvalidArgument("kiln_execute_options.threads is ", options.threads);
  }
  if (options.donate_aliased != 0 && options.donate_aliased != 1) {
    return InvalidArgument("kiln_execute_options.donate_aliased is ", options.donate_aliased,
                           "; expected 0 or 1");
  }
  return OkStatus();
}

}  // namespace

Status Call::BindBuffer(std::string_view kind, size_t number, kiln_buffer* buffer,
                        const Shape& shape, std::vector<Ref<kiln_buffer>>& bound) const {
  auto fail = [&](const auto&... what) {
    const auto& names = callee_->signature().parameter_names;
    std::string label = kind == "argument" && number < names.size()
                            ? Cat(kind, " ", number, " '", names[number], "'")
                            : Cat(kind, " ", number);
    return InvalidArgument("'", callee_->name(), "': ", label, what...);
  };
  if (!buffer) return fail(" is NULL; expected ", shape);
  kiln_device& device = callee_->device();
  if (&buffer->device() != &device) {
    return fail(" is on ", buffer->device().name(),
                &buffer->context() == &device.context() ? "" : " of another context", "; expected ",
                device.name());
  }
  if (buffer->is_donated()) {
    return FailedPrecondition("'", callee_->name(), "': ", kind, " ", number,
                              " has been donated to an execution");
  }
  if (kind == "result" && buffer->storage().is_read_only()) return fail(" is in read-only memory");
  if (!buffer->shape().SameTypeAndDimensions(shape)) {
    return fail(" is ", buffer->shape(), "; expected ", shape);
  }
  bound.push_back(Ref<kiln_buffer>::Share(buffer));
  return OkStatus();
}

Result<Call> Call::Bind(std::shared_ptr<const Callee> callee, const kiln_execute_options* options,
                        kiln_buffer* const* arguments, size_t argument_count,
                        kiln_buffer* const* results, size_t result_count) {
  Call call(std::move(callee));
  const program::Signature& signature = call.callee_->signature();
  KILN_ASSIGN_OR_RETURN(call.options_, ReadOptions("kiln_execute_options", options));
  KILN_RETURN_IF_ERROR(CheckOptions(call.options_, *call.callee_));
  KILN_RETURN_IF_ERROR(CheckCount("argument", *call.callee_, argument_count,
                                  signature.parameters.size(), arguments));
  KILN_RETURN_IF_ERROR(
      CheckCount("result", *call.callee_, result_count, signature.results.size(), results));
  call.arguments_.reserve(argument_count);
  call.results_.reserve(result_count);
  for (size_t i = 0; i < argument_count; ++i) {
    KILN_RETURN_IF_ERROR(
        call.BindBuffer("argument", i, arguments[i], signature.parameters[i], call.arguments_));
  }
  KILN_RETURN_IF_ERROR(call.ReadDonations());
  bool any_given = !call.donated_.empty();
  for (size_t i = 0; i < result_count; ++i) {
    int alias = signature.aliases.empty() ? -1 : signature.aliases[i];
    if (alias >= 0 && !call.donated_.empty() && call.donated_[static_cast<size_t>(alias)]) {
      if (results[i]) {
        return InvalidArgument("'", call.callee_->name(), "': a buffer is given for result ", i,
                               ", which is in the memory of argument ", alias,
                               "; expected NULL, as that is donated");
      }
      call.results_.push_back(kiln_buffer::InMemoryOf(*call.arguments_[static_cast<size_t>(alias)],
                                                      signature.results[i]));
    } else if (results[i]) {
      any_given = true;
      KILN_RETURN_IF_ERROR(
          call.BindBuffer("result", i, results[i], signature.results[i], call.results_));
    } else {
      KILN_ASSIGN_OR_RETURN(Ref<kiln_buffer> made,
                            kiln_buffer::Allocate(call.callee_->device(), signature.results[i]));
      call.results_.push_back(std::move(made));
    }
  }
  if (any_given) KILN_RETURN_IF_ERROR(call.CheckOverlaps(results));
  return call;
}

Status Call::ReadDonations() {
  const program::Signature& signature = callee_->signature();
  // What most calls do: nothing is donated, and nothing must be.
  if (options_.donated_count == 0 && options_.donate_aliased == 0 && options_.kept_count == 0 &&
      std::find(signature.must_alias.begin(), signature.must_alias.end(), true) ==
          signature.must_alias.end()) {
    options_.donated = options_.kept = nullptr;
    return OkStatus();
  }
  std::vector<bool> donated(arguments_.size(), false);
  auto mark = [&](std::string_view name, const size_t* list, size_t count, bool value) -> Status {
    if (!list && count > 0) {
      return InvalidArgument("kiln_execute_options.", name, " is NULL, with ", count, " numbers");
    }
    for (size_t i = 0; i < count; ++i) {
      if (list[i] >= donated.size()) {
        return InvalidArgument("kiln_execute_options.", name, ": '", callee_->name(),
                               "' has no argument ", list[i], "; there are ", donated.size());
      }
      donated[list[i]] = value;
    }
    return OkStatus();
  };
  KILN_RETURN_IF_ERROR(mark("donated", options_.donated, options_.donated_count, true));
  if (options_.donate_aliased != 0) {
    for (int alias : signature.aliases) {
      if (alias >= 0) donated[static_cast<size_t>(alias)] = true;
    }
  }
  KILN_RETURN_IF_ERROR(mark("kept", options_.kept, options_.kept_count, false));
  for (size_t i = 0; i < donated.size(); ++i) {
    if (donated[i] && arguments_[i]->storage().is_read_only()) {
      return InvalidArgument("'", callee_->name(), "': argument ", i,
                             " is donated, and is in read-only memory");
    }
  }
  for (size_t r = 0; r < signature.must_alias.size(); ++r) {
    size_t alias = static_cast<size_t>(std::max(signature.aliases[r], 0));
    if (signature.must_alias[r] && !donated[alias]) {
      return FailedPrecondition("'", callee_->name(), "': argument ", alias,
                                " must be donated, as result ", r, " is in its memory");
    }
  }
  if (std::find(donated.begin(), donated.end(), true) != donated.end()) {
    donated_ = std::move(donated);
  }
  // What the user's lists say has been read.
  options_.donated = options_.kept = nullptr;
  return OkStatus();
}

Status Call::Donate() const {
  for (size_t i = 0; i < donated_.size(); ++i) {
    if (!donated_[i] || arguments_[i]->Donate()) continue;
    for (size_t k = 0; k < i; ++k) {
      if (donated_[k]) arguments_[k]->Undonate();
    }
    return FailedPrecondition("'", callee_->name(), "': argument ", i,
                              " has been donated to an execution");
  }
  return OkStatus();
}

Status Call::CheckOverlaps(kiln_buffer* const* given_results) const {
  struct Range {
    const std::byte* begin;
    const std::byte* end;
    bool is_result;  // or an argument that is donated
    std::string_view kind;
    size_t number;
  };
  ShortList<Range, 8> ranges;
  auto add = [&](const kiln_buffer& buffer, bool is_result, std::string_view kind, size_t number) {
    if (buffer.bytes() == 0) return;
    ranges.push_back({buffer.data(), buffer.data() + buffer.bytes(), is_result, kind, number});
  };
  for (size_t i = 0; i < arguments_.size(); ++i) {
    bool donated = !donated_.empty() && donated_[i];
    add(*arguments_[i], donated, donated ? "donated argument" : "argument", i);
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    if (given_results[i]) add(*results_[i], true, "result", i);
  }
  // Few are sooner compared than sorted.
  constexpr size_t kFew = 6;
  if (ranges.size() <= kFew) {
    auto overlap = [](const Range& a, const Range& b) {
      return (a.is_result || b.is_result) && a.begin < b.end && b.begin < a.end;
    };
    bool any = false;
    for (const Range* a = ranges.begin(); a != ranges.end(); ++a) {
      for (const Range* b = a + 1; b < ranges.end(); ++b) any = any || overlap(*a, *b);
    }
    if (!any) return OkStatus();
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  // Of the ranges so far, the argument and the result that reach farthest.
  const Range* argument = nullptr;
  const Range* result = nullptr;
  for (const Range& range : ranges) {
    const Range* other = nullptr;
    if (result && range.begin < result->end) other = result;
    if (range.is_result && argument && range.begin < argument->end) other = argument;
    if (other) {
      const Range& of = range.is_result ? range : *other;
      const Range& with = range.is_result ? *other : range;
      return InvalidArgument("'", callee_->name(), "': ", of.kind, " ", of.number,
                             " shares memory with ", with.kind, " ", with.number);
    }
    const Range*& farthest = range.is_result ? result : argument;
    if (!farthest || range.end > farthest->end) farthest = &range;
  }
  return OkStatus();
}

void Call::WaitForStarts() const {
  auto wait = [](const Ref<kiln_event>& event) {
    if (event) event->WaitForStart();
  };
  for (size_t i = 0; i < arguments_.size(); ++i) {
    wait(!donated_.empty() && donated_[i] ? arguments_[i]->last_use() : arguments_[i]->value());
  }
  for (const Ref<kiln_buffer>& result : results_) wait(result->last_use());
}

class Call::Running {
 public:
  explicit Running(const Call& call)
      : call_(call),
        staging_(call.callee_->device().context().allocator()),
        trace_(call.callee_->device().context().trace()) {}

  // Nothing is given back while it is in use.
  ~Running() {
    if (completion_) (void)completion_->Wait();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  // Once the arguments' values are there, or come before this in the device's order.
  Status Start() {
    if (IsCancelled(call_.options_)) {
      return Cancelled("'", call_.callee_->name(), "' was cancelled");
    }
    ShortList<const void*, 16> in;
    ShortList<void*, 16> out;
    for (const Ref<kiln_buffer>& argument : call_.arguments_) {
      KILN_ASSIGN_OR_RETURN(
          std::byte * memory,
          staging_.MemoryOf(*argument, false, call_.callee_->argument_alignment(in.size())));
      in.push_back(memory);
    }
    for (const Ref<kiln_buffer>& result : call_.results_) {
      KILN_ASSIGN_OR_RETURN(std::byte * memory,
                            staging_.MemoryOf(*result, true, program::kAlignment));
      out.push_back(memory);
    }
    start_ = trace_ ? TraceSink::Now() : 0;
    runtime::RunOptions options{.threads = call_.options_.threads,
                                .trace = trace_.get(),
                                .cancel = call_.options_.cancel,
                                .stream = call_.options_.stream};
    KILN_ASSIGN_OR_RETURN(completion_,
                          call_.callee_->Start(std::span(in.data(), in.size()),
                                               std::span(out.data(), out.size()), options));
    return OkStatus();
  }
  bool goes_on() const { return completion_ != nullptr; }

  Status Finish() {
    if (completion_) KILN_RETURN_IF_ERROR(std::exchange(completion_, nullptr)->Wait());
    if (trace_) {
      trace_->Add({call_.callee_->name(),
                   "execute",
                   start_,
                   TraceSink::Now() - start_,
                   TraceSink::LaneOfThisThread(),
                   {{"device", call_.callee_->device().name()}}});
    }
    staging_.CopyResults();
    return OkStatus();
  }

 private:
  const Call& call_;
  Staging staging_;
  std::shared_ptr<TraceSink> trace_;
  int64_t start_ = 0;
  std::unique_ptr<runtime::Completion> completion_;
};

Status Call::WaitForBuffers() const {
  Status first;
  for (const Ref<kiln_buffer>& argument : arguments_) {
    Status status = argument->WaitForValue();
    if (first.ok()) first = std::move(status);
  }
  for (const Ref<kiln_buffer>& result : results_) result->WaitForUses();
  for (size_t i = 0; i < donated_.size(); ++i) {
    if (donated_[i]) arguments_[i]->WaitForUses();
  }
  return first;
}

Status Call::RunToEnd() const {
  Running running(*this);
  KILN_RETURN_IF_ERROR(running.Start());
  KILN_RETURN_IF_ERROR(running.Finish());
  for (const Ref<kiln_buffer>& result : results_) result->SetWritten();
  return OkStatus();
}

Status Call::RunNow() {
  KILN_RETURN_IF_ERROR(WaitForBuffers());
  KILN_RETURN_IF_ERROR(Donate());
  return RunToEnd();
}

Ref<kiln_event> Call::RunHere() {
  auto event = MakeRef<kiln_event>(callee_->device().context());
  Status status;
  try {
    // Of what has been queued before all is over: some of it may have failed.
    for (const Ref<kiln_buffer>& argument : arguments_) {
      Ref<kiln_event> value = argument->value();
      if (value && status.ok()) status = value->Wait();
    }
    if (status.ok()) status = RunToEnd();
  } catch (...) {
    status = StatusOfException();
  }
  if (!status.ok()) {
    for (const Ref<kiln_buffer>& result : results_) result->AddUse(event, true);
  }
  event->Finish(std::move(status));
  return event;
}

// A run in the queue. The event outlives the rest, and with it the context does.
class Call::QueuedRun : public Queue::Job {
 public:
  QueuedRun(Call call, Ref<kiln_event> event) : event_(std::move(event)), call_(std::move(call)) {
    for (const Ref<kiln_buffer>& argument : call_->arguments_) {
      if (Ref<kiln_event> value = argument->value()) inputs_.push_back(std::move(value));
    }
  }

  // From now on the buffers wait for this run.
  void Announce() const {
    for (const Ref<kiln_buffer>& argument : call_->arguments_) argument->AddUse(event_, false);
    for (const Ref<kiln_buffer>& result : call_->results_) result->AddUse(event_, true);
  }

  // Before the run's turn in the queue, which then waits for the end only.
  Status StartNow() noexcept {
    Status status = Try([&]() -> Status {
      // Those that have failed already; the others are before this in the device's order.
      for (const Ref<kiln_event>& input : inputs_) {
        if (input->is_ready()) KILN_RETURN_IF_ERROR(input->status());
      }
      running_.emplace(*call_);
      KILN_RETURN_IF_ERROR(running_->Start());
      return running_->goes_on() ? OkStatus() : running_->Finish();
    });
    event_->SetStarted();
    return status;
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
      // They were queued before, and have ended: what was made of a failure is no better.
      for (const Ref<kiln_event>& input : inputs_) KILN_RETURN_IF_ERROR(input->Wait());
      return own;
    }));
  }

 private:
  template <typename F>
  static Status Try(F&& f) noexcept {
    try {
      return f();
    } catch (...) {
      return StatusOfException();
    }
  }

  void End(Status status) noexcept {
    // Whoever waits for the event finds that nothing is held any more.
    running_.reset();
    inputs_.clear();
    call_.reset();
    event_->Finish(std::move(status));
  }

  Ref<kiln_event> event_;
  std::optional<Call> call_;
  std::vector<Ref<kiln_event>> inputs_;
  std::optional<Running> running_;
};

Result<Ref<kiln_event>> Call::Start() && {
  kiln_context& context = callee_->device().context();
  const bool on_stream = options_.stream != nullptr;
  const bool calls_here = callee_->calls_users_functions() && !context.callbacks_from_any_thread();
  // A failure of what makes an argument is the run's, and its event tells it.
  if (calls_here) (void)WaitForBuffers();
  if (on_stream) WaitForStarts();
  if (callee_->is_small() && context.queue().IsIdle()) {
    KILN_RETURN_IF_ERROR(Donate());
    return RunHere();
  }
  KILN_RETURN_IF_ERROR(Donate());
  auto event = MakeRef<kiln_event>(context);
  auto run = std::make_unique<QueuedRun>(std::move(*this), event);
  if (!context.runs_asynchronously() || calls_here) {
    run->Announce();
    if (run->Run()) run->Finish();
    return event;
  }
  if (on_stream) KILN_RETURN_IF_ERROR(run->StartNow());
  // Queued while announced: another thread that finds the buffers in use finds the run queued.
  const QueuedRun& announced = *run;
  context.queue().Push(std::move(run), [&] { announced.Announce(); });
  return event;
}

void HandOverResults(const std::vector<Ref<kiln_buffer>>& bound, kiln_buffer** results) {
  for (size_t i = 0; i < bound.size(); ++i) {
    if (!results[i]) results[i] = HandOver(bound[i]);
  }
}

}  // namespace kiln::capi

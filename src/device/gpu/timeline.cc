#include "device/gpu/timeline.h"

#include <algorithm>
#include <cstdlib>

#include "base/strings.h"

namespace kiln::device {
namespace {

// Clocks drift apart, and the driver reports time differences as floats.
constexpr int64_t kAnchorAge = 1'000'000'000;
constexpr int kAnchorTries = 3;

// The number of pending spans after which a run waits for them and shows them.
constexpr size_t kMostSpans = 4096;
constexpr size_t kMostKept = 64;
constexpr size_t kMostEvents = 2 * kMostSpans;
// Records of unclaimed work, such as that of runs without a timeline.
constexpr size_t kMostCalls = 1 << 13;
// Work whose record has not come.
constexpr size_t kMostDone = 1 << 13;

// The tolerance between records and events, in addition to the clocks' errors.
constexpr int64_t kSlackNs = 50'000;

bool GraphsAreAskedFor() {
  const char* value = std::getenv("KILN_TIMELINE_GRAPHS");
  return value && *value && std::string_view(value) != "0";
}

bool IsKindOf(const GpuActivity& activity, const GpuWork& work) {
  switch (work.kind) {
    case GpuWork::Kind::kKernel:
      return activity.kind == GpuActivity::Kind::kKernel && activity.symbol == work.symbol;
    case GpuWork::Kind::kCopy:
      return activity.kind == GpuActivity::Kind::kCopy && activity.bytes <= work.bytes;
    case GpuWork::Kind::kFill:
      return activity.kind == GpuActivity::Kind::kFill && activity.bytes == work.bytes;
    case GpuWork::Kind::kGraph:
      return std::any_of(work.parts.begin(), work.parts.end(),
                         [&](const GpuWorkPtr& part) { return IsKindOf(activity, *part); });
  }
  return false;
}

}  // namespace

GpuWorkPtr DescribeKernel(const GpuKernel& kernel, const GpuGrid& grid,
                          const program::LaunchInfo& info) {
  auto work = std::make_shared<GpuWork>();
  work->name = info.kernel_name;
  work->symbol = kernel.symbol();
  const GpuResources resources = kernel.resources();
  work->args = {{"ops", Join(info.op_names, ", ")},
                {"symbol", work->symbol},
                {"grid", grid.blocks},
                {"block", grid.threads},
                {"dynamic_shared_bytes", grid.shared_bytes},
                {"static_shared_bytes", resources.shared_bytes}};
  if (resources.registers < 0) {
    work->args.push_back({"registers", "emulated"});
  } else {
    work->args.push_back({"registers", resources.registers});
    work->args.push_back({"local_bytes", resources.local_bytes});
  }
  work->args.push_back({"bytes", info.bytes});
  work->args.push_back({"flops", info.flops});
  return work;
}

GpuWorkPtr DescribeLibraryCall(std::string library, const program::LaunchInfo& info) {
  auto work = std::make_shared<GpuWork>();
  work->name = info.kernel_name;
  work->args = {{"ops", Join(info.op_names, ", ")},
                {"by", std::move(library)},
                {"bytes", info.bytes},
                {"flops", info.flops}};
  return work;
}

GpuWorkPtr DescribeCopy(std::string name, int64_t bytes) {
  auto work = std::make_shared<GpuWork>();
  work->kind = name == "fill" ? GpuWork::Kind::kFill : GpuWork::Kind::kCopy;
  work->name = std::move(name);
  work->bytes = bytes;
  work->args = {{"bytes", bytes}};
  return work;
}

GpuWorkPtr DescribeGraph(std::string name, std::vector<GpuWorkPtr> parts) {
  auto work = std::make_shared<GpuWork>();
  work->kind = GpuWork::Kind::kGraph;
  work->name = std::move(name);
  work->parts = std::move(parts);
  auto kernels = std::count_if(work->parts.begin(), work->parts.end(), [](const GpuWorkPtr& part) {
    return part->kind == GpuWork::Kind::kKernel;
  });
  work->args = {{"nodes", std::ssize(work->parts)}, {"kernels", int64_t{kernels}}};
  return work;
}

// --- A stream's work

GpuRecording::GpuRecording(GpuTimeline& timeline, TraceSink& trace, GpuStream& stream,
                           std::string stream_name)
    : timeline_(timeline), trace_(trace), stream_(stream), stream_name_(std::move(stream_name)) {}

GpuRecording::~GpuRecording() {
  for (Span& span : spans_) {
    timeline_.GiveBack(std::move(span.before));
    timeline_.GiveBack(std::move(span.behind));
  }
}

std::unique_ptr<GpuEvent> GpuRecording::Mark() {
  if (!anchor_) return nullptr;
  std::unique_ptr<GpuEvent> event = timeline_.TakeEvent();
  if (event && !stream_.Record(*event).ok()) {
    timeline_.GiveBack(std::move(event));
    return nullptr;
  }
  return event;
}

void GpuRecording::Add(GpuWorkPtr work, std::unique_ptr<GpuEvent> before, bool was_asked) {
  if (!was_asked) {
    timeline_.GiveBack(std::move(before));
    return;
  }
  std::unique_ptr<GpuEvent> behind = Mark();
  spans_.push_back({std::move(work), std::move(before), std::move(behind)});
  if (spans_.size() < kMostSpans) return;
  Wait();
  Show();
}

bool GpuRecording::IsDone() const {
  if (spans_.empty() || !spans_.back().behind) return true;
  Result<bool> is_done = spans_.back().behind->IsDone();
  return !is_done.ok() || *is_done;
}

void GpuRecording::Wait() const {
  // The work's failure is reported elsewhere.
  if (!spans_.empty() && spans_.back().behind) (void)spans_.back().behind->Wait();
}

std::optional<GpuTimes> GpuRecording::TimesOf(const Span& span) const {
  if (!span.before || !span.behind) return std::nullopt;
  GpuTimes times;
  times.error_ns = anchor_->error_ns;
  auto host_time = [&](GpuEvent& event, int64_t* ns) {
    Result<double> elapsed = timeline_.machine_.ElapsedMicroseconds(*anchor_->event, event);
    if (elapsed.ok()) *ns = anchor_->host_ns + static_cast<int64_t>(*elapsed * 1000);
    return elapsed.ok();
  };
  if (!host_time(*span.before, &times.start_ns) || !host_time(*span.behind, &times.end_ns)) {
    return std::nullopt;
  }
  return times;
}

void GpuRecording::Show() {
  for (Span& span : spans_) {
    std::optional<GpuTimes> times = TimesOf(span);
    timeline_.GiveBack(std::move(span.before));
    timeline_.GiveBack(std::move(span.behind));
    std::lock_guard lock(timeline_.mutex_);
    timeline_.done_.push_back({&trace_, stream_name_, stream_number_, std::move(span.work), times});
  }
  spans_.clear();
  std::lock_guard lock(timeline_.mutex_);
  // A trace other than the device's may end with the run.
  timeline_.ShowDone(timeline_.trace_.get() == &trace_);
}

// --- A device's

std::shared_ptr<TraceSink> GpuTimeline::trace() const {
  if (!records_transfers()) return nullptr;
  std::lock_guard lock(mutex_);
  return trace_;
}

void GpuTimeline::SetTrace(std::shared_ptr<TraceSink> trace) {
  records_transfers_.store(trace != nullptr, std::memory_order_release);
  if (trace) {
    std::lock_guard lock(mutex_);
    trace_ = std::move(trace);
    return;
  }
  std::deque<Kept> kept;
  {
    std::lock_guard lock(kept_mutex_);
    kept.swap(kept_);
  }
  for (Kept& k : kept) {
    k.recording->Wait();
    k.recording->Show();
  }
  std::lock_guard lock(mutex_);
  ShowDone(false);
  activities_.reset();
  has_listened_ = false;
  calls_.clear();
  ends_.clear();
  trace_.reset();
}

std::unique_ptr<GpuRecording> GpuTimeline::Begin(TraceSink& trace, GpuStream& stream,
                                                 const void* callers) {
  std::string stream_name;
  if (callers) stream_name = Cat(" stream ", reinterpret_cast<uintptr_t>(callers));
  std::unique_ptr<GpuRecording> recording(
      new GpuRecording(*this, trace, stream, std::move(stream_name)));
  std::lock_guard lock(mutex_);
  if (!std::exchange(has_listened_, true)) activities_ = machine_.ListenToActivities();
  recording->shows_graphs_ = activities_ != nullptr || GraphsAreAskedFor();
  if (activities_) recording->stream_number_ = activities_->NumberOf(stream);
  recording->anchor_ = CurrentAnchor();
  return recording;
}

void GpuTimeline::Listen(bool all) {
  for (GpuActivity& a : activities_->Take(all)) calls_[a.call].push_back(std::move(a));
  while (calls_.size() > kMostCalls) calls_.erase(calls_.begin());
}

void GpuTimeline::ShowDone(bool wait) {
  if (activities_) Listen(!wait);
  std::deque<Done> late;
  for (Done& done : done_) {
    Activities record = activities_ ? FindRecord(done) : Activities();
    if (!record.empty()) {
      GpuTimes times{record.front().start_ns, record.front().end_ns, activities_->error_ns()};
      for (const GpuActivity& a : record) times.end_ns = std::max(times.end_ns, a.end_ns);
      Show(done, *done.work, times, "records");
      if (done.work->kind == GpuWork::Kind::kGraph) ShowGraph(done, record);
    } else if (activities_ && wait && done_.size() <= kMostDone) {
      late.push_back(std::move(done));
    } else if (done.times) {
      Show(done, *done.work, *done.times, "events");
    }
  }
  done_ = std::move(late);
}

GpuTimeline::Activities GpuTimeline::FindRecord(const Done& done) {
  const GpuWork& work = *done.work;
  const bool is_graph = work.kind == GpuWork::Kind::kGraph;
  const bool in_pieces = work.kind == GpuWork::Kind::kCopy;
  const int64_t slack =
      kSlackNs + activities_->error_ns() + (done.times ? done.times->error_ns : 0);
  auto fits = [&](const GpuActivity& a) {
    // A graph's work may run in streams of the driver.
    if (!is_graph && done.stream_number >= 0 && a.stream != done.stream_number) return false;
    if (done.times &&
        (a.start_ns < done.times->start_ns - slack || a.end_ns > done.times->end_ns + slack)) {
      return false;
    }
    return a.in_graph == is_graph && IsKindOf(a, work);
  };
  int64_t bytes = 0;
  std::vector<uint32_t> numbers;
  for (const auto& [number, call] : calls_) {
    if (!std::all_of(call.begin(), call.end(), fits)) continue;
    numbers.push_back(number);
    for (const GpuActivity& a : call) bytes += a.bytes;
    if (!in_pieces || bytes >= work.bytes) break;
  }
  if (in_pieces && bytes != work.bytes) numbers.clear();
  Activities record;
  for (uint32_t number : numbers) {
    Activities call = std::move(calls_.extract(number).mapped());
    record.insert(record.end(), call.begin(), call.end());
  }
  std::stable_sort(record.begin(), record.end(), [](const GpuActivity& a, const GpuActivity& b) {
    return a.start_ns < b.start_ns;
  });
  return record;
}

void GpuTimeline::ShowGraph(const Done& done, const Activities& record) {
  // Kernels with the same code are identified by their order. A graph's loop repeats its kernels.
  std::map<std::pair<GpuActivity::Kind, std::string>, size_t> seen;
  for (const GpuActivity& a : record) {
    std::vector<const GpuWork*> parts;
    for (const GpuWorkPtr& part : done.work->parts) {
      if (IsKindOf(a, *part)) parts.push_back(part.get());
    }
    const size_t number = seen[{a.kind, a.symbol}]++;
    Show(done, *parts[number % parts.size()], {a.start_ns, a.end_ns, activities_->error_ns()},
         "records");
  }
}

void GpuTimeline::Show(const Done& done, const GpuWork& work, GpuTimes times,
                       const char* timed_by) {
  TraceEvent event;
  const char* lane = "";
  switch (work.kind) {
    case GpuWork::Kind::kKernel:
      event.category = "kernel";
      lane = " kernels";
      break;
    case GpuWork::Kind::kCopy:
    case GpuWork::Kind::kFill:
      event.category = "copy";
      lane = " copies";
      break;
    case GpuWork::Kind::kGraph:
      event.category = "graph";
      lane = " graphs";
      break;
  }
  event.name = work.name;
  event.lane = done.trace->LaneOf(Cat(device_, done.stream_name, lane));
  // Work of a stream does not overlap, even if the clocks say so.
  int64_t& last = ends_.try_emplace(event.lane, INT64_MIN).first->second;
  if (times.start_ns < last && last - times.start_ns <= 2 * times.error_ns + kSlackNs) {
    times.start_ns = last;
  }
  times.end_ns = std::max(times.end_ns, times.start_ns);
  last = std::max(last, times.end_ns);
  event.start_ns = times.start_ns;
  event.duration_ns = times.end_ns - times.start_ns;
  event.args = work.args;
  event.args.push_back({"device", device_});
  event.args.push_back({"timed_by", timed_by});
  event.args.push_back({"clock_error_us", static_cast<double>(times.error_ns) / 1000});
  done.trace->Add(std::move(event));
}

void GpuTimeline::Keep(std::shared_ptr<TraceSink> trace, std::unique_ptr<GpuRecording> recording,
                       bool ends) {
  std::lock_guard lock(kept_mutex_);
  kept_.push_back({std::move(trace), std::move(recording)});
  // The recording may have ended meanwhile: nobody else waits for this one.
  if (!records_transfers()) kept_.back().recording->Wait();
  ends = ends || !records_transfers();
  // Polling an event costs the driver time: not with every transfer.
  if (!ends && kept_.size() < kMostKept) return;
  while (!kept_.empty() && kept_.front().recording->IsDone()) {
    kept_.front().recording->Show();
    kept_.pop_front();
  }
}

std::shared_ptr<const GpuRecording::Anchor> GpuTimeline::CurrentAnchor() {
  if (anchor_ && TraceSink::Now() - anchor_->host_ns < kAnchorAge) return anchor_;
  std::shared_ptr<GpuRecording::Anchor> best;
  for (int i = 0; i < kAnchorTries; ++i) {
    auto anchor = std::make_shared<GpuRecording::Anchor>();
    if (!MakeAnchor(anchor.get()).ok()) break;
    if (!best || anchor->error_ns < best->error_ns) best = std::move(anchor);
  }
  if (best) anchor_ = std::move(best);
  return anchor_;
}

Status GpuTimeline::MakeAnchor(GpuRecording::Anchor* anchor) {
  if (!anchor_stream_) {
    KILN_ASSIGN_OR_RETURN(anchor_stream_, machine_.MakeStream());
  }
  KILN_ASSIGN_OR_RETURN(anchor->event, machine_.MakeTimedEvent());
  int64_t before = TraceSink::Now();
  KILN_RETURN_IF_ERROR(anchor_stream_->Record(*anchor->event));
  KILN_RETURN_IF_ERROR(anchor->event->Wait());
  int64_t behind = TraceSink::Now();
  anchor->host_ns = before + (behind - before) / 2;
  anchor->error_ns = (behind - before + 1) / 2;
  return OkStatus();
}

std::unique_ptr<GpuEvent> GpuTimeline::TakeEvent() {
  {
    std::lock_guard lock(mutex_);
    if (!events_.empty()) {
      std::unique_ptr<GpuEvent> event = std::move(events_.back());
      events_.pop_back();
      return event;
    }
  }
  Result<std::unique_ptr<GpuEvent>> event = machine_.MakeTimedEvent();
  return event.ok() ? *std::move(event) : nullptr;
}

void GpuTimeline::GiveBack(std::unique_ptr<GpuEvent> event) {
  if (!event) return;
  std::lock_guard lock(mutex_);
  if (events_.size() < kMostEvents) events_.push_back(std::move(event));
}

}  // namespace kiln::device

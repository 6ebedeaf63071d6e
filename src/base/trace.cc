#include "base/trace.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <set>

#include "base/stack.h"
#include "base/strings.h"

namespace kiln {
namespace {

// Microseconds with the nanoseconds behind the point.
std::string Microseconds(int64_t ns) {
  std::string rest = Cat(ns % 1000);
  return Cat(ns / 1000, ".", std::string(3 - rest.size(), '0'), rest);
}

int32_t NewLane() {
  static std::atomic<int32_t> next{1};
  return next.fetch_add(1);
}

// The names of threads, set by TraceSink::NameThisThread.
thread_local std::string name_of_this_thread;

std::string NameOfThisThread() {
  if (!name_of_this_thread.empty()) return name_of_this_thread;
  char name[16] = "";
  (void)pthread_getname_np(pthread_self(), name, sizeof(name));
  return name;
}

std::string JsonOf(const TraceValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? Cat("\"", EscapeJson(*text), "\"") : ToText(value);
}

}  // namespace

std::string ToText(const TraceValue& value) {
  return std::visit([](const auto& v) { return Cat(v); }, value);
}

TraceSink::TraceSink() = default;
TraceSink::TraceSink(TraceSink& whole, std::string device)
    : whole_(&whole), device_(std::move(device)) {}
TraceSink::~TraceSink() = default;

int64_t TraceSink::Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int32_t TraceSink::LaneOfThisThread() {
  thread_local int32_t lane = NewLane();
  return lane;
}

TraceSink& TraceSink::ForDevice(const std::string& device) {
  std::lock_guard lock(mutex_);
  std::unique_ptr<TraceSink>& sink = devices_[device];
  if (!sink) sink.reset(new TraceSink(*this, device));
  return *sink;
}

int32_t TraceSink::LaneOf(const std::string& name) {
  if (whole_) return whole_->LaneOf(name);
  std::lock_guard lock(mutex_);
  for (const auto& [lane, known] : lanes_) {
    if (known == name) return lane;
  }
  return lanes_.emplace_back(NewLane(), name).first;
}

void TraceSink::NameThisThread(std::string_view kind, int64_t number) noexcept {
  try {
    std::string name = Cat("kiln ", kind, " ", number);
    (void)pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
    name_of_this_thread = std::move(name);
  } catch (const std::bad_alloc&) {
    // A missing name is harmless.
  }
}

void TraceSink::Add(TraceEvent event) {
  if (whole_) {
    event.device = device_;
    whole_->Add(std::move(event));
    return;
  }
  NotAbandonable scope;
  std::lock_guard lock(mutex_);
  if (event.lane == LaneOfThisThread() &&
      std::ranges::find(lanes_, event.lane, &std::pair<int32_t, std::string>::first) ==
          lanes_.end()) {
    lanes_.emplace_back(event.lane, NameOfThisThread());
  }
  events_.push_back(std::move(event));
}

void TraceSink::NameLane(int32_t lane, std::string name) {
  if (whole_) {
    whole_->NameLane(lane, std::move(name));
    return;
  }
  std::lock_guard lock(mutex_);
  for (auto& [known, old] : lanes_) {
    if (known == lane) {
      old = std::move(name);
      return;
    }
  }
  lanes_.emplace_back(lane, std::move(name));
}

size_t TraceSink::size() const {
  if (whole_) return whole_->size();
  std::lock_guard lock(mutex_);
  return events_.size();
}

std::vector<TraceEvent> TraceSink::Events() const {
  if (whole_) return whole_->Events();
  std::lock_guard lock(mutex_);
  return events_;
}

std::string TraceSink::LaneName(int32_t lane) const {
  if (whole_) return whole_->LaneName(lane);
  std::lock_guard lock(mutex_);
  for (const auto& [known, name] : lanes_) {
    if (known == lane) return name;
  }
  return "";
}

std::string TraceSink::ToChromeJson() const {
  if (whole_) return whole_->ToChromeJson();
  std::lock_guard lock(mutex_);
  int64_t origin = events_.empty() ? 0 : INT64_MAX;
  std::map<std::string, int> processes = {{"", 1}};
  std::set<std::pair<int, int32_t>> used;  // process and lane
  for (const TraceEvent& e : events_) {
    origin = std::min(origin, e.start_ns);
    const int next = static_cast<int>(processes.size()) + 1;
    used.emplace(processes.emplace(e.device, next).first->second, e.lane);
  }
  std::string out = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  bool first = true;
  auto separate = [&] {
    if (!first) out += ",\n";
    first = false;
  };
  auto name_row = [&](std::string_view kind, int process, int32_t lane, std::string_view name) {
    separate();
    out += Cat("{\"name\": \"", kind, "\", \"ph\": \"M\", \"pid\": ", process, ", \"tid\": ", lane,
               ", \"args\": {\"name\": \"", EscapeJson(name), "\"}}");
  };
  for (const auto& [device, process] : processes) {
    name_row("process_name", process, 0, device.empty() ? "host" : device);
  }
  for (const auto& [lane, name] : lanes_) {
    for (const auto& [device, process] : processes) {
      if (used.contains({process, lane})) name_row("thread_name", process, lane, name);
    }
  }
  for (const TraceEvent& e : events_) {
    separate();
    out += Cat("{\"name\": \"", EscapeJson(e.name), "\", \"cat\": \"", EscapeJson(e.category),
               "\", \"ph\": \"X\", \"ts\": ", Microseconds(e.start_ns - origin),
               ", \"dur\": ", Microseconds(e.duration_ns), ", \"pid\": ", processes.at(e.device),
               ", \"tid\": ", e.lane, ", \"args\": {");
    for (size_t i = 0; i < e.args.size(); ++i) {
      out +=
          Cat(i > 0 ? ", \"" : "\"", EscapeJson(e.args[i].first), "\": ", JsonOf(e.args[i].second));
    }
    out += "}}";
  }
  return out + "\n]}\n";
}

TraceSpan::TraceSpan(TraceSink* sink, std::string_view name, std::string_view category)
    : sink_(sink) {
  if (!sink_) return;
  event_.name = name;
  event_.category = category;
  event_.start_ns = TraceSink::Now();
}

TraceSpan::~TraceSpan() { End(); }

void TraceSpan::AddArg(std::string_view key, TraceValue value) {
  if (sink_) event_.args.emplace_back(key, std::move(value));
}

void TraceSpan::End() noexcept {
  if (!sink_) return;
  TraceSink& sink = *std::exchange(sink_, nullptr);
  event_.duration_ns = TraceSink::Now() - event_.start_ns;
  event_.lane = TraceSink::LaneOfThisThread();
  try {
    sink.Add(std::move(event_));
  } catch (const std::bad_alloc&) {
    // The timeline lacks one bar.
  }
}

}  // namespace kiln

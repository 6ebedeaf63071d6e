// Timelines of events, in Chrome's trace event format.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kiln {

// Numbers stay numbers, so that viewers can add them up.
using TraceValue = std::variant<std::string, int64_t, double>;
using TraceArg = std::pair<std::string, TraceValue>;
// As text, a string without quotes.
std::string ToText(const TraceValue& value);

struct TraceEvent {
  std::string name;
  std::string category;  // "compile", of it "stage" and "pass", "codegen", "load"; "session";
                         // "execute", "kernel", ...
  int64_t start_ns = 0, duration_ns = 0;
  int32_t lane = 0;  // a row of the timeline; TraceSink::LaneOfThisThread for host work
  std::vector<TraceArg> args;
  std::string device = {};  // whose work it is, set by the sink of a device; empty: the host's
};

// Collects events from any thread.
class TraceSink {
 public:
  TraceSink();
  ~TraceSink();
  TraceSink(const TraceSink&) = delete;
  TraceSink& operator=(const TraceSink&) = delete;

  // The sink for the work of a device: the same recording, with the device in each event. It lives
  // as long as this one.
  TraceSink& ForDevice(const std::string& device);

  // The clock of all events, in nanoseconds.
  static int64_t Now();
  static int32_t LaneOfThisThread();
  // Names this thread's lane, and the thread in debuggers, which show 15 characters of it: "kiln
  // worker 3". Unnamed threads are shown by their name in the system.
  static void NameThisThread(std::string_view kind, int64_t number) noexcept;
  // The lane of that name, for work not on a host thread; made by the first call.
  int32_t LaneOf(const std::string& name);

  void Add(TraceEvent event);
  void NameLane(int32_t lane, std::string name);
  size_t size() const;
  // In the order of their arrival.
  std::vector<TraceEvent> Events() const;
  // Empty for lanes without a name.
  std::string LaneName(int32_t lane) const;
  // {"displayTimeUnit": "ns", "traceEvents": [...]}: complete events ("ph": "X") with times in
  // microseconds, and the lanes' names as metadata. A device is a process, with its lanes as
  // threads; process 1 is the host.
  std::string ToChromeJson() const;

 private:
  TraceSink(TraceSink& whole, std::string device);

  // Of the sink of a device: the recording.
  TraceSink* const whole_ = nullptr;
  const std::string device_;
  std::map<std::string, std::unique_ptr<TraceSink>> devices_;
  mutable std::mutex mutex_;
  std::vector<TraceEvent> events_;
  std::vector<std::pair<int32_t, std::string>> lanes_;
};

// A span of this thread's work, from here to the end of the scope. Does nothing without a sink.
class TraceSpan {
 public:
  TraceSpan(TraceSink* sink, std::string_view name, std::string_view category);
  ~TraceSpan();
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  void AddArg(std::string_view key, TraceValue value);
  // Ends the span early; the destructor then does nothing.
  void End() noexcept;

 private:
  TraceSink* sink_;
  TraceEvent event_;
};

}  // namespace kiln

// Timelines: what happened when, in Chrome's trace event format.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

struct TraceEvent {
  std::string name;
  std::string category;  // "compile", "pass", "kernel", "op", ...
  int64_t start_ns = 0, duration_ns = 0;
  int32_t lane = 0;  // a row of the timeline; TraceSink::LaneOfThisThread for host work
  std::vector<std::pair<std::string, std::string>> args;
};

// Collects events from any thread.
class TraceSink {
 public:
  // Nanoseconds of the clock that all events are on.
  static int64_t Now();
  static int32_t LaneOfThisThread();
  // The lane of that name, for what is no thread's; made with the first call.
  int32_t LaneOf(const std::string& name);

  void Add(TraceEvent event);
  void NameLane(int32_t lane, std::string name);
  size_t size() const;
  // As they came.
  std::vector<TraceEvent> Events() const;
  // Empty for those that have none.
  std::string LaneName(int32_t lane) const;
  // {"displayTimeUnit": "ns", "traceEvents": [...]}: complete events ("ph": "X") with times in
  // microseconds, and the lanes' names as metadata.
  std::string ToChromeJson() const;

 private:
  mutable std::mutex mutex_;
  std::vector<TraceEvent> events_;
  std::vector<std::pair<int32_t, std::string>> lanes_;
};

}  // namespace kiln

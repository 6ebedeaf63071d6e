#include "base/xspace.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <map>
#include <string_view>
#include <variant>
#include <vector>

#include "base/overloaded.h"
#include "base/strings.h"
#include "base/varint.h"

namespace kiln {
namespace {

// The numbers of fields in xplane.proto.
namespace field {
enum Space { kPlanes = 1 };
enum Plane { kPlaneId = 1, kPlaneName = 2, kLines = 3, kEventNames = 4, kStatNames = 5 };
enum Line { kLineId = 1, kLineName = 2, kLineStart = 3, kEvents = 4 };
enum Event { kEventName = 1, kOffset = 2, kDuration = 3, kStats = 4 };
enum Stat { kStatName = 1, kDouble = 2, kInteger = 4, kText = 5 };
enum Name { kNameId = 1, kNameText = 2 };
enum Entry { kKey = 1, kValue = 2 };  // of a map
}  // namespace field

// A message of protocol buffers.
class Message {
 public:
  void AddInteger(int number, int64_t value) {
    AddTag(number, 0);
    AppendVarint(bytes_, static_cast<uint64_t>(value));
  }
  void AddDouble(int number, double value) {
    AddTag(number, 1);
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(bits >> shift);
  }
  void AddText(int number, std::string_view text) {
    AddTag(number, 2);
    AppendVarint(bytes_, text.size());
    bytes_ += text;
  }
  void Add(int number, const Message& message) { AddText(number, message.bytes_); }
  std::string Take() { return std::move(bytes_); }

 private:
  void AddTag(int number, int wire_type) {
    AppendVarint(bytes_, static_cast<uint64_t>(number) << 3 | static_cast<uint64_t>(wire_type));
  }

  std::string bytes_;
};

// The names of a plane's events, or of their stats. Events and stats have numbers, from 1.
class Names {
 public:
  int64_t Of(const std::string& name) {
    return numbers_.emplace(name, static_cast<int64_t>(numbers_.size()) + 1).first->second;
  }
  void AddTo(Message* plane, int number) const {
    for (const auto& [name, id] : numbers_) {
      Message metadata, entry;
      metadata.AddInteger(field::kNameId, id);
      metadata.AddText(field::kNameText, name);
      entry.AddInteger(field::kKey, id);
      entry.Add(field::kValue, metadata);
      plane->Add(number, entry);
    }
  }

 private:
  std::map<std::string, int64_t> numbers_;
};

// The work of a device, or of the host.
class Plane {
 public:
  void Add(const TraceEvent& event) { lanes_[event.lane].push_back(&event); }

  // `epoch_ns` is the time of the system's clock when the clock of events was 0.
  Message Build(int64_t id, const std::string& name, const TraceSink& sink, int64_t epoch_ns) {
    Message plane;
    plane.AddInteger(field::kPlaneId, id);
    plane.AddText(field::kPlaneName, Cat("/device:CUSTOM:Kiln ", name));
    for (const auto& [lane, events] : lanes_) {
      plane.Add(field::kLines, LineOf(lane, events, sink, epoch_ns));
    }
    event_names_.AddTo(&plane, field::kEventNames);
    stat_names_.AddTo(&plane, field::kStatNames);
    return plane;
  }

 private:
  Message LineOf(int32_t lane, const std::vector<const TraceEvent*>& events, const TraceSink& sink,
                 int64_t epoch_ns) {
    const int64_t start =
        std::ranges::min(events, {}, [](const TraceEvent* e) { return e->start_ns; })->start_ns;
    Message line;
    line.AddInteger(field::kLineId, lane);
    const std::string name = sink.LaneName(lane);
    line.AddText(field::kLineName, name.empty() ? Cat("thread ", lane) : name);
    line.AddInteger(field::kLineStart, epoch_ns + start);
    for (const TraceEvent* event : events) line.Add(field::kEvents, EventOf(*event, start));
    return line;
  }

  Message EventOf(const TraceEvent& event, int64_t line_start_ns) {
    constexpr int64_t kPicoseconds = 1000;  // of a nanosecond
    Message message;
    message.AddInteger(field::kEventName, event_names_.Of(event.name));
    message.AddInteger(field::kOffset, (event.start_ns - line_start_ns) * kPicoseconds);
    message.AddInteger(field::kDuration, event.duration_ns * kPicoseconds);
    message.Add(field::kStats, StatOf("category", event.category));
    for (const auto& [key, value] : event.args) message.Add(field::kStats, StatOf(key, value));
    return message;
  }

  Message StatOf(const std::string& key, const TraceValue& value) {
    Message stat;
    stat.AddInteger(field::kStatName, stat_names_.Of(key));
    std::visit(Overloaded{
                   [&](const std::string& text) { stat.AddText(field::kText, text); },
                   [&](int64_t integer) { stat.AddInteger(field::kInteger, integer); },
                   [&](double number) { stat.AddDouble(field::kDouble, number); },
               },
               value);
    return stat;
  }

  std::map<int32_t, std::vector<const TraceEvent*>> lanes_;
  Names event_names_, stat_names_;
};

}  // namespace

std::string ToXSpace(const TraceSink& sink) {
  const int64_t epoch_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count() -
                           TraceSink::Now();
  const std::vector<TraceEvent> events = sink.Events();
  std::map<std::string, Plane> planes;
  for (const TraceEvent& event : events) planes[event.device].Add(event);
  Message space;
  int64_t id = 0;
  for (auto& [device, plane] : planes) {
    space.Add(field::kPlanes, plane.Build(++id, device.empty() ? "host" : device, sink, epoch_ns));
  }
  return space.Take();
}

}  // namespace kiln

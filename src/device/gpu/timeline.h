// Timelines of GPUs: kernels, copies and graphs on lanes of their own.
//
// Events of the stream measure begin and end of work. They are read after the end of their run, so
// there are no waits between launches. The GPU's clock is mapped to the host's by an anchor: an
// event in a stream of its own, awaited by the host. The machine's own records (GpuActivities), if
// any, are more precise, and are shown instead.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/trace.h"
#include "device/gpu/machine.h"
#include "program/program.h"

namespace kiln::device {

// A piece of work in timelines.
struct GpuWork {
  enum class Kind : uint8_t { kKernel, kCopy, kFill, kGraph };
  Kind kind = Kind::kKernel;
  std::string name;
  std::string symbol;  // of a kernel
  int64_t bytes = 0;   // copied or filled
  std::vector<TraceArg> args;
  std::vector<std::shared_ptr<const GpuWork>> parts;  // of a graph
};
using GpuWorkPtr = std::shared_ptr<const GpuWork>;

GpuWorkPtr DescribeKernel(const GpuKernel& kernel, const GpuGrid& grid,
                          const program::LaunchInfo& info);
// Kernels of the library.
GpuWorkPtr DescribeLibraryCall(std::string library, const program::LaunchInfo& info);
// "copy to host", for example.
GpuWorkPtr DescribeCopy(std::string name, int64_t bytes);
GpuWorkPtr DescribeGraph(std::string name, std::vector<GpuWorkPtr> parts);

// On the host's clock.
struct GpuTimes {
  int64_t start_ns = 0, end_ns = 0, error_ns = 0;
};

class GpuTimeline;

// The work of one stream, in order. On one thread at a time; the timeline, the stream and the trace
// outlive it. Nothing here fails: work without data is not shown.
class GpuRecording {
 public:
  ~GpuRecording();

  // Whether graphs are launched as such, and not as single commands.
  bool shows_graphs() const { return shows_graphs_; }

  // Submits work with an event before it and one behind it.
  template <typename Ask>
  Status Around(GpuWorkPtr work, Ask ask) {
    std::unique_ptr<GpuEvent> before = Mark();
    Status status = ask();
    Add(std::move(work), std::move(before), status.ok());
    return status;
  }

  // Whether all of it is done.
  bool IsDone() const;
  void Wait() const;
  // All of it is done: shows and removes it.
  void Show();

 private:
  friend class GpuTimeline;
  struct Span {
    GpuWorkPtr work;
    std::unique_ptr<GpuEvent> before, behind;  // null where one could not be had
  };
  // A GPU event with a known time on the host's clock.
  struct Anchor {
    std::unique_ptr<GpuEvent> event;
    int64_t host_ns = 0, error_ns = 0;
  };
  GpuRecording(GpuTimeline& timeline, TraceSink& trace, GpuStream& stream, std::string stream_name);
  std::unique_ptr<GpuEvent> Mark();
  void Add(GpuWorkPtr work, std::unique_ptr<GpuEvent> before, bool was_asked);
  // The times by the events.
  std::optional<GpuTimes> TimesOf(const Span& span) const;

  GpuTimeline& timeline_;
  TraceSink& trace_;
  GpuStream& stream_;
  const std::string stream_name_;
  bool shows_graphs_ = false;
  int64_t stream_number_ = -1;
  std::shared_ptr<const Anchor> anchor_;
  std::vector<Span> spans_;
};

// One for each device.
class GpuTimeline {
 public:
  GpuTimeline(GpuMachine& machine, std::string device)
      : machine_(machine), device_(std::move(device)) {}
  GpuTimeline(const GpuTimeline&) = delete;
  GpuTimeline& operator=(const GpuTimeline&) = delete;

  // Records the device's transfers from now on, too. Null ends that, and waits for pending ones.
  void SetTrace(std::shared_ptr<TraceSink> trace);
  bool records_transfers() const { return records_transfers_.load(std::memory_order_acquire); }

  // If `callers` is not null, the stream is that one.
  std::unique_ptr<GpuRecording> Begin(TraceSink& trace, GpuStream& stream, const void* callers);

  // A transfer on the device's stream; `ends` means that it has ended when `ask` returns.
  template <typename Ask>
  Status Transfer(std::string_view name, int64_t bytes, GpuStream& stream, bool ends, Ask ask) {
    std::shared_ptr<TraceSink> trace = this->trace();
    if (!trace) return ask();
    std::unique_ptr<GpuRecording> recording = Begin(*trace, stream, nullptr);
    Status status = recording->Around(DescribeCopy(std::string(name), bytes), ask);
    if (status.ok()) Keep(std::move(trace), std::move(recording), ends);
    return status;
  }

 private:
  friend class GpuRecording;
  struct Kept {
    std::shared_ptr<TraceSink> trace;
    std::unique_ptr<GpuRecording> recording;
  };
  // Completed work, with the times of its events.
  struct Done {
    TraceSink* trace = nullptr;
    std::string stream_name;
    int64_t stream_number = -1;
    GpuWorkPtr work;
    std::optional<GpuTimes> times;
  };
  using Activities = std::vector<GpuActivity>;

  std::shared_ptr<TraceSink> trace() const;
  void Keep(std::shared_ptr<TraceSink> trace, std::unique_ptr<GpuRecording> recording, bool ends);
  std::shared_ptr<const GpuRecording::Anchor> CurrentAnchor();
  Status MakeAnchor(GpuRecording::Anchor* anchor);
  std::unique_ptr<GpuEvent> TakeEvent();
  void GiveBack(std::unique_ptr<GpuEvent> event);

  // The functions below with the mutex held. Shows completed work: by the machine's records, which
  // may come later, or unless `wait` by its events.
  void ShowDone(bool wait);
  void Listen(bool all);
  // Removes and returns the calls that match its records, if any.
  Activities FindRecord(const Done& done);
  void ShowGraph(const Done& done, const Activities& record);
  void Show(const Done& done, const GpuWork& work, GpuTimes times, const char* timed_by);

  GpuMachine& machine_;
  const std::string device_;
  std::atomic<bool> records_transfers_{false};

  mutable std::mutex mutex_;
  std::shared_ptr<TraceSink> trace_;
  std::vector<std::unique_ptr<GpuEvent>> events_;  // to be used again
  std::unique_ptr<GpuStream> anchor_stream_;
  std::shared_ptr<const GpuRecording::Anchor> anchor_;
  bool has_listened_ = false;
  std::unique_ptr<GpuActivities> activities_;
  std::map<uint32_t, Activities> calls_;  // that nobody has claimed yet
  std::deque<Done> done_;                 // that is still to be shown
  std::map<int32_t, int64_t> ends_;       // of the last spans, by lane

  std::mutex kept_mutex_;
  std::deque<Kept> kept_;  // transfers that may be under way; after all that they use
};

}  // namespace kiln::device

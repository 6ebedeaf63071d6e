// What a GPU does, for timelines: kernels, copies and graphs on lanes of their own.
//
// Events of the stream's tell when work began and ended. They are read after the end of the run
// that they are of, so that nothing is waited for between launches. The GPU's clock is mapped to
// the host's by an anchor: an event in a stream of its own that the host waits for. Where the
// machine tells by itself what it has done (GpuActivities), that is exacter, and is shown instead.
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

// A piece of work as timelines show it.
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
// Kernels that only the library knows.
GpuWorkPtr DescribeLibraryCall(std::string library, const program::LaunchInfo& info);
// "copy to host", for example.
GpuWorkPtr DescribeCopy(std::string name, int64_t bytes);
GpuWorkPtr DescribeGraph(std::string name, std::vector<GpuWorkPtr> parts);

// On the host's clock.
struct GpuTimes {
  int64_t start_ns = 0, end_ns = 0, error_ns = 0;
};

class GpuTimeline;

// What one stream is asked for in a row. On one thread at a time; the timeline, the stream and the
// trace outlive it. Nothing here fails: what cannot be told is not shown.
class GpuRecording {
 public:
  ~GpuRecording();

  // Whether graphs are to be launched as such, rather than what they hold one by one.
  bool shows_graphs() const { return shows_graphs_; }

  // Asks for work with an event before it and one behind it.
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
  // All of it is done: it is shown, and forgotten.
  void Show();

 private:
  friend class GpuTimeline;
  struct Span {
    GpuWorkPtr work;
    std::unique_ptr<GpuEvent> before, behind;  // null where one could not be had
  };
  // An event of the GPU's whose time is known on the host's clock.
  struct Anchor {
    std::unique_ptr<GpuEvent> event;
    int64_t host_ns = 0, error_ns = 0;
  };
  GpuRecording(GpuTimeline& timeline, TraceSink& trace, GpuStream& stream, std::string stream_name);
  std::unique_ptr<GpuEvent> Mark();
  void Add(GpuWorkPtr work, std::unique_ptr<GpuEvent> before, bool was_asked);
  // Where the events told them.
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

  // From here on the device's transfers are recorded, too. Null ends that, and waits for those that
  // are under way.
  void SetTrace(std::shared_ptr<TraceSink> trace);
  bool records_transfers() const { return records_transfers_.load(std::memory_order_acquire); }

  // Where `callers` is not null, the stream is that one.
  std::unique_ptr<GpuRecording> Begin(TraceSink& trace, GpuStream& stream, const void* callers);

  // A transfer on the device's stream, with `ends` where it has ended when `ask` returns.
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
  // Work that has ended, and what its events say.
  struct Done {
    TraceSink* trace = nullptr;
    std::string stream_name;
    int64_t stream_number = -1;
    GpuWorkPtr work;
    std::optional<GpuTimes> times;
  };
  using Call = std::vector<GpuActivity>;

  std::shared_ptr<TraceSink> trace() const;
  void Keep(std::shared_ptr<TraceSink> trace, std::unique_ptr<GpuRecording> recording, bool ends);
  std::shared_ptr<const GpuRecording::Anchor> CurrentAnchor();
  Status MakeAnchor(GpuRecording::Anchor* anchor);
  std::unique_ptr<GpuEvent> TakeEvent();
  void GiveBack(std::unique_ptr<GpuEvent> event);

  // Those below with the mutex held. Shows what is done: by the machine's records, which may come
  // later, or unless `wait` by what the events say.
  void ShowDone(bool wait);
  void Listen(bool all);
  // The calls that are a record of it, if there are any; they are taken out.
  Call FindRecord(const Done& done);
  void ShowGraph(const Done& done, const Call& record);
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
  std::map<uint32_t, Call> calls_;   // that nobody has claimed yet
  std::deque<Done> done_;            // that is still to be shown
  std::map<int32_t, int64_t> ends_;  // of the last spans, by lane

  std::mutex kept_mutex_;
  std::deque<Kept> kept_;  // transfers that may be under way; after all that they use
};

}  // namespace kiln::device

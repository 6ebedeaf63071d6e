#include "device/gpu/autotuner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "device/gpu/library_gemm.h"

namespace kiln::device {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kMostTime = std::chrono::milliseconds(50);
constexpr size_t kMostSamples = 11;
// After this many samples, a candidate slower by this factor is abandoned.
constexpr size_t kLeastSamples = 3;
constexpr double kClear = 1.5;
// A sample of short runs holds several, to exceed the resolution of the clock.
constexpr double kSampleMicroseconds = 200;
constexpr double kMostRuns = 20;
// Bytes of ordinary numbers in all types: subnormals may be slower, and zeros take less power.
constexpr uint8_t kContents = 0x3c;

double MedianOf(std::vector<double> samples) {
  auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

// Device arrays, freed in the stream's order.
class Arrays {
 public:
  explicit Arrays(GpuDevice& device) : device_(device) {}
  ~Arrays() {
    for (const GpuSpan& span : spans_) device_.Deallocate(span.address, span.bytes);
  }
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;

  Result<GpuSpan> New(GpuStream& stream, int64_t bytes) {
    KILN_ASSIGN_OR_RETURN(std::byte * memory, device_.Allocate(bytes));
    spans_.push_back({memory, bytes});
    KILN_RETURN_IF_ERROR(stream.Fill(memory, kContents, bytes));
    return spans_.back();
  }

 private:
  GpuDevice& device_;
  std::vector<GpuSpan> spans_;
};

// A repeatedly timed operation.
struct Candidate {
  std::function<Status()> run;
  double runs = 1;  // in a sample
  std::vector<double> samples;
};

class Timer {
 public:
  static Result<Timer> Make(GpuMachine& machine, GpuStream& stream) {
    Timer timer(machine, stream);
    KILN_ASSIGN_OR_RETURN(timer.from_, machine.MakeTimedEvent());
    KILN_ASSIGN_OR_RETURN(timer.to_, machine.MakeTimedEvent());
    return timer;
  }

  // The timed runs are submitted behind one more run, so that there are no gaps.
  Status Sample(Candidate& candidate) {
    KILN_RETURN_IF_ERROR(candidate.run());
    KILN_RETURN_IF_ERROR(stream_->Record(*from_));
    for (double run = 0; run < candidate.runs; ++run) KILN_RETURN_IF_ERROR(candidate.run());
    KILN_RETURN_IF_ERROR(stream_->Record(*to_));
    KILN_RETURN_IF_ERROR(to_->Wait());
    KILN_ASSIGN_OR_RETURN(double microseconds, machine_->ElapsedMicroseconds(*from_, *to_));
    candidate.samples.push_back(microseconds / candidate.runs);
    return OkStatus();
  }

 private:
  Timer(GpuMachine& machine, GpuStream& stream) : machine_(&machine), stream_(&stream) {}
  GpuMachine* machine_;
  GpuStream* stream_;
  std::unique_ptr<GpuEvent> from_, to_;
};

// The first sample is a warm-up; if it takes very long it is the only one.
Status Compare(Timer& timer, Candidate& a, Candidate& b) {
  const auto end = Clock::now() + kMostTime;
  for (Candidate* c : {&a, &b}) KILN_RETURN_IF_ERROR(timer.Sample(*c));
  for (Candidate* c : {&a, &b}) {
    if (Clock::now() >= end) return OkStatus();
    c->runs =
        std::clamp(std::floor(kSampleMicroseconds / std::max(c->samples[0], 1.0)), 1.0, kMostRuns);
  }
  a.samples.clear();
  b.samples.clear();
  while (a.samples.size() < kMostSamples) {
    for (Candidate* c : {&a, &b}) KILN_RETURN_IF_ERROR(timer.Sample(*c));
    if (Clock::now() >= end) return OkStatus();
    if (a.samples.size() < kLeastSamples) continue;
    const double x = MedianOf(a.samples), y = MedianOf(b.samples);
    if (x > kClear * y || y > kClear * x) return OkStatus();
  }
  return OkStatus();
}

}  // namespace

Result<GemmTimes> MeasureGemm(GpuDevice& device, const GpuLibraryCall& call,
                              std::span<const GpuCommand> ours) {
  KILN_ASSIGN_OR_RETURN(GpuStream * stream, device.Stream());
  Arrays arrays(device);
  // All launches of a kernel have the same arguments.
  std::vector<GpuSpan> our_args;
  for (const program::Slice& slice : ours[0].args) {
    KILN_ASSIGN_OR_RETURN(GpuSpan span, arrays.New(*stream, slice.bytes));
    our_args.push_back(span);
  }
  std::vector<GpuSpan> library_args;
  for (int param : {call.what.x.argument, call.what.y.argument, call.what.out_matrix.argument}) {
    library_args.push_back(our_args[static_cast<size_t>(param)]);
  }
  if (int64_t bytes = call.gemm->workspace_bytes(); bytes > 0) {
    KILN_ASSIGN_OR_RETURN(GpuSpan span, arrays.New(*stream, bytes));
    library_args.push_back(span);
  }
  Candidate kernel, library;
  kernel.run = [&]() -> Status {
    for (const GpuCommand& command : ours) {
      KILN_RETURN_IF_ERROR(stream->Launch(*command.kernel, command.grid, our_args));
    }
    return OkStatus();
  };
  library.run = [&] { return stream->Launch(*call.gemm, library_args); };
  KILN_ASSIGN_OR_RETURN(Timer timer, Timer::Make(device.machine(), *stream));
  KILN_RETURN_IF_ERROR(Compare(timer, kernel, library));
  return GemmTimes{MedianOf(kernel.samples), MedianOf(library.samples)};
}

}  // namespace kiln::device

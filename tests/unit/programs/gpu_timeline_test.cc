// Timelines of the emulated GPU, which has events and no records of its own; or of CUDA's, by
// CUPTI's records where it is installed.

#include <cstring>

#include "device/emulated/machine.h"
#include "support/compiled.h"
#include "support/gpu.h"
#include "support/gpu_timeline.h"

namespace kiln {
namespace {

using namespace testing;

class GpuTimelineTest : public ::testing::Test {
 protected:
  // What times a kernel; where CUPTI may be installed or not, all kernels are the same.
  static std::string TimedBy(const TraceEvent& kernel) {
    const std::string timed_by = ArgOf(kernel, "timed_by");
    if (!IsTestOfCuda() || timed_by != "records") EXPECT_EQ(timed_by, "events");
    return timed_by;
  }

  device::GpuDevice& device_ = SharedGpu();
  std::shared_ptr<TraceSink> trace_ = std::make_shared<TraceSink>();
};

TEST_F(GpuTimelineTest, KernelsAndCopiesHaveLanes) {
  TimedProgram program(device_, kTwoKernels);
  device_.SetTrace(trace_);
  int64_t start = TraceSink::Now();
  std::vector<float> values(1024, 0.5f), sorted(1024);
  ASSERT_TRUE(device_.CopyFromHost(program.arguments()[0], values.data(), 4096).ok());
  ASSERT_TRUE(program.Run(trace_.get()).ok());
  ASSERT_TRUE(device_.CopyToHost(sorted.data(), program.results()[0], 4096).ok());
  int64_t end = TraceSink::Now();
  device_.SetTrace(nullptr);
  EXPECT_EQ(sorted[7], 8.0f);

  auto kernels = LaneOf(*trace_, "GPU:0 kernels"), copies = LaneOf(*trace_, "GPU:0 copies");
  const program::Program& p = program.executable().program();
  ASSERT_EQ(kernels.size(), p.launches.size());
  ASSERT_GE(kernels.size(), 2u);
  for (size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_EQ(kernels[i].name, p.launches[program::LaunchId(i)].kernel_name);
    EXPECT_EQ(ArgOf(kernels[i], "ops"), Join(p.launches[program::LaunchId(i)].op_names, ", "));
    if (IsTestOfCuda()) {
      EXPECT_GT(std::atoi(ArgOf(kernels[i], "registers").c_str()), 0);
    } else {
      EXPECT_EQ(ArgOf(kernels[i], "registers"), "emulated");
    }
    EXPECT_EQ(TimedBy(kernels[i]), TimedBy(kernels[0]));
    EXPECT_GT(std::atoi(ArgOf(kernels[i], "grid").c_str()), 0);
    EXPECT_GE(std::atoi(ArgOf(kernels[i], "block").c_str()), 32);
    EXPECT_GT(kernels[i].duration_ns, 0);
  }
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0].name, "copy from host");
  EXPECT_EQ(copies[1].name, "copy to host");
  for (const TraceEvent& copy : copies) EXPECT_EQ(ArgOf(copy, "bytes"), "4096");
  EXPECT_LE(EndOf(copies[0]), kernels[0].start_ns);
  EXPECT_LE(EndOf(kernels.back()), copies[1].start_ns);
  ExpectWithin(kernels, start, end);
  ExpectWithin(copies, start, end);
  EXPECT_TRUE(LaneOf(*trace_, "GPU:0 graphs").empty());
  EXPECT_EQ(trace_->size(), kernels.size() + copies.size());
}

TEST_F(GpuTimelineTest, NothingIsRecordedWithoutATimeline) {
  TimedProgram program(device_, kTwoKernels);
  device_.SetTrace(trace_);
  device_.SetTrace(nullptr);
  ASSERT_TRUE(device_.FillZero(program.arguments()[0], 4096).ok());
  ASSERT_TRUE(program.Run(nullptr).ok());
  EXPECT_EQ(trace_->size(), 0u);
}

TEST_F(GpuTimelineTest, GraphsAreOneSpanWhereThatIsAskedFor) {
  WithVariable graphs("KILN_TIMELINE_GRAPHS", "1");
  TimedProgram program(device_, kTwoKernels);
  ASSERT_TRUE(device_.FillZero(program.arguments()[0], 4096).ok());
  ASSERT_TRUE(program.Run(trace_.get()).ok());
  auto in_turn = LaneOf(*trace_, "GPU:0 kernels");
  const size_t kernels = in_turn.size();
  ASSERT_GE(kernels, 2u);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(program.Run(trace_.get()).ok());
  auto graphs_of = LaneOf(*trace_, "GPU:0 graphs");
  ASSERT_EQ(graphs_of.size(), 3u);
  EXPECT_EQ(graphs_of[0].name, "two");
  EXPECT_EQ(ArgOf(graphs_of[0], "kernels"), Cat(kernels));
  // Records show what is in a graph.
  const size_t runs = TimedBy(in_turn[0]) == "records" ? 4 : 1;
  EXPECT_EQ(LaneOf(*trace_, "GPU:0 kernels").size(), runs * kernels);
}

TEST_F(GpuTimelineTest, LoopsShowEachOfTheirTurns) {
  TimedProgram program(device_, R"(HloModule loop
less { p = (s32[], f32[64], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=2
  ROOT l = pred[] compare(i, n), direction=LT }
turn { p = (s32[], f32[64], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[64] get-tuple-element(p), index=1
  y = f32[64] sine(x)
  n = s32[] get-tuple-element(p), index=2
  ROOT t = (s32[], f32[64], s32[]) tuple(next, y, n) }
ENTRY e { x = f32[64] parameter(0)
  n = s32[] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[64], s32[]) tuple(zero, x, n)
  w = (s32[], f32[64], s32[]) while(t), condition=less, body=turn
  ROOT r = f32[64] get-tuple-element(w), index=1 }
)");
  ASSERT_TRUE(device_.FillZero(program.arguments()[0], 256).ok());
  const int32_t turns = 5;
  ASSERT_TRUE(device_.CopyFromHost(program.arguments()[1], &turns, sizeof(turns)).ok());
  ASSERT_TRUE(program.Run(trace_.get()).ok());
  auto kernels = LaneOf(*trace_, "GPU:0 kernels"), copies = LaneOf(*trace_, "GPU:0 copies");
  auto sines = std::count_if(kernels.begin(), kernels.end(), [](const TraceEvent& event) {
    return ArgOf(event, "ops").find("y") != std::string::npos;
  });
  EXPECT_EQ(sines, 5);
  auto reads = std::count_if(copies.begin(), copies.end(),
                             [](const TraceEvent& event) { return event.name == "copy to host"; });
  EXPECT_EQ(reads, 6);
}

TEST_F(GpuTimelineTest, TransfersUnderWayAreInATimelineThatEnds) {
  TimedProgram program(device_, kTwoKernels);
  device_.SetTrace(trace_);
  std::vector<float> values(1024, 1.0f);
  ASSERT_TRUE(device_.CopyFromHost(program.arguments()[0], values.data(), 4096).ok());
  auto completion = program.Start(trace_.get());
  ASSERT_TRUE(completion.ok()) << completion.status().ToString();
  device_.SetTrace(nullptr);
  EXPECT_EQ(LaneOf(*trace_, "GPU:0 copies").size(), 1u);
  ASSERT_TRUE((*completion)->Wait().ok());
  EXPECT_GE(LaneOf(*trace_, "GPU:0 kernels").size(), 2u);
}

// Events that tell times take no failure from the event that is to tell it. A driver knows the
// copy to be wrong at once, and nothing fails behind it.
TEST_F(GpuTimelineTest, FailuresAreToldToWhoAsks) {
  auto& machine = device_.machine();
  auto stream = machine.MakeStream().value();
  auto before = machine.MakeTimedEvent().value(), behind = machine.MakeTimedEvent().value();
  auto end = machine.MakeEvent().value();
  std::byte nowhere[16] = {};
  ASSERT_TRUE(stream->Record(*before).ok());
  const bool is_late = stream->Copy(nowhere, nowhere + 8, 8).ok();
  EXPECT_EQ(is_late, !IsTestOfCuda());
  ASSERT_TRUE(stream->Record(*behind).ok());
  ASSERT_TRUE(stream->Record(*end).ok());
  if (is_late) EXPECT_FALSE(machine.ElapsedMicroseconds(*before, *behind).ok());  // not yet
  EXPECT_TRUE(behind->Wait().ok());
  EXPECT_EQ(end->Wait().ok(), !is_late);
  auto elapsed = machine.ElapsedMicroseconds(*before, *behind);
  ASSERT_TRUE(elapsed.ok()) << elapsed.status().ToString();
  EXPECT_GE(*elapsed, 0);
  EXPECT_FALSE(machine.ElapsedMicroseconds(*before, *end).ok());
}

// A GPU's assembler tells of each kernel, an emulated GPU of its grid only.
TEST_F(GpuTimelineTest, ResourcesOfEveryKernel) {
  TimedProgram program(device_, kTwoKernels);
  const std::string report = program.executable().ResourceReport();
  EXPECT_EQ(report.find("emulated") == std::string::npos, IsTestOfCuda()) << report;
  EXPECT_NE(report.find("registers"), std::string::npos) << report;
  for (const program::LaunchInfo& launch : program.executable().program().launches) {
    EXPECT_NE(report.find(launch.kernel_name), std::string::npos) << report;
  }
}

}  // namespace
}  // namespace kiln

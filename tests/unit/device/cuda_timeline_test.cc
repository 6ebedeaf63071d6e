// Timelines by the driver's events and by CUPTI's records, of which the stand-in makes both.

#include "support/cuda_standin.h"
#include "support/gpu_timeline.h"

namespace kiln::device::cuda {
namespace {

using namespace testing;

class CudaTimelineTest : public CudaTest {
 protected:
  void Open(bool has_cupti, const std::string& settings = "") {
    Configure("real_time=1,sm=80");
    if (!settings.empty()) Configure(settings);
    CudaOptions options = Options();
    options.cupti_library = has_cupti ? standin_.path : "off";
    machine_ = Machine(options);
    ASSERT_NE(machine_, nullptr);
    device_ = std::make_unique<GpuDevice>("GPU:0", machine_, 0);
    program_ = std::make_unique<TimedProgram>(*device_, kTwoKernels);
  }
  void TearDown() override {
    program_.reset();
    device_.reset();
    machine_.reset();
    trace_.reset();
    EXPECT_EQ(Count("buffers"), 0);
    CudaTest::TearDown();
  }
  // A run, of which the timeline says all there is.
  void ExpectRun(const std::string& timed_by) {
    size_t before = Lane("kernels").size();
    int64_t start = TraceSink::Now();
    Status status = program_->Run(trace_.get());
    ASSERT_TRUE(status.ok()) << status.ToString();
    auto kernels = Lane("kernels");
    kernels.erase(kernels.begin(), kernels.begin() + static_cast<std::ptrdiff_t>(before));
    const auto& launches = program_->executable().program().launches;
    ASSERT_EQ(kernels.size(), launches.size());
    ExpectWithin(kernels, start, TraceSink::Now());
    for (size_t i = 0; i < kernels.size(); ++i) {
      EXPECT_EQ(kernels[i].name, launches[program::LaunchId(i)].kernel_name);
      EXPECT_EQ(ArgOf(kernels[i], "timed_by"), timed_by);
      EXPECT_EQ(ArgOf(kernels[i], "registers"), "40");
      EXPECT_EQ(ArgOf(kernels[i], "local_bytes"), "16");
      EXPECT_EQ(ArgOf(kernels[i], "static_shared_bytes"), "256");
      EXPECT_GE(kernels[i].duration_ns, 2000);
    }
  }
  std::vector<TraceEvent> Lane(const std::string& name) { return LaneOf(*trace_, "GPU:0 " + name); }

  std::shared_ptr<CudaMachine> machine_;
  std::unique_ptr<GpuDevice> device_;
  std::unique_ptr<TimedProgram> program_;
  std::shared_ptr<TraceSink> trace_ = std::make_shared<TraceSink>();
};

TEST_F(CudaTimelineTest, EventsTellOfKernelsOneByOne) {
  Open(false);
  for (int i = 0; i < 3; ++i) ExpectRun("events");
  EXPECT_TRUE(Lane("graphs").empty());
  EXPECT_EQ(Count("cuGraphLaunch"), 0);
}

TEST_F(CudaTimelineTest, RunsWithoutATimelineHaveNoEvents) {
  Open(true);
  ASSERT_TRUE(program_->Run(nullptr).ok());
  EXPECT_EQ(Count("cuEventElapsedTime"), 0);
  EXPECT_EQ(Count("cuptiActivityEnable"), 0);
  EXPECT_EQ(Count("cuEventRecord"), Count("cuEventCreate"));
}

TEST_F(CudaTimelineTest, RecordsTellOfKernelsInGraphs) {
  Open(true);
  ExpectRun("records");
  EXPECT_TRUE(Lane("graphs").empty());
  for (int i = 0; i < 3; ++i) ExpectRun("records");
  auto graphs = Lane("graphs"), kernels = Lane("kernels");
  ASSERT_EQ(graphs.size(), 3u);
  EXPECT_EQ(Count("cuGraphLaunch"), 3);
  size_t in_graphs = 0;
  for (const TraceEvent& graph : graphs) {
    for (const TraceEvent& kernel : kernels) {
      in_graphs += kernel.start_ns >= graph.start_ns && EndOf(kernel) <= EndOf(graph);
    }
  }
  EXPECT_EQ(in_graphs, 3 * kernels.size() / 4);
}

TEST_F(CudaTimelineTest, WithoutRecordsEventsTell) {
  Open(true, "drop_records=1");
  ExpectRun("events");
  ASSERT_TRUE(program_->Run(trace_.get()).ok());
  auto graphs = Lane("graphs");
  ASSERT_EQ(graphs.size(), 1u);
  EXPECT_EQ(ArgOf(graphs[0], "timed_by"), "events");
}

TEST_F(CudaTimelineTest, ACuptiThatFailsIsDoneWithout) {
  for (const char* function : {"cuptiGetTimestamp", "cuptiGetContextId", "cuptiActivityEnable",
                               "cuptiActivityRegisterCallbacks"}) {
    SCOPED_TRACE(function);
    Open(true);
    Fail(function, function == std::string("cuptiActivityEnable") ? 2 : 1, 100, Error::kUnknown);
    ExpectRun("events");
    ExpectRun("events");
    EXPECT_TRUE(Lane("graphs").empty());
    FailNothing();
    TearDown();
    SetUp();
    trace_ = std::make_shared<TraceSink>();
  }
  Open(true);
  Fail("cuptiActivityFlushAll", 1, 100, Error::kUnknown);
  ExpectRun("events");
  FailNothing();
  TearDown();
  SetUp();
  trace_ = std::make_shared<TraceSink>();
  Open(true);
  Fail("cuptiGetStreamIdEx", 1, 100, Error::kUnknown);
  ExpectRun("records");
  FailNothing();
}

TEST_F(CudaTimelineTest, AFileThatIsNoCuptiIsDoneWithout) {
  for (const char* library : {"/nowhere/libcupti.so", "libm.so.6"}) {
    CudaOptions options = Options();
    options.cupti_library = library;
    auto machine = Machine(options);
    ASSERT_NE(machine, nullptr);
    EXPECT_EQ(machine->ListenToActivities(), nullptr);
  }
}

TEST_F(CudaTimelineTest, FailuresOfEventsMakeTheTimelinePoorer) {
  Open(false);
  ASSERT_TRUE(program_->Run(trace_.get()).ok());  // the anchor is there
  const size_t all = Lane("kernels").size();
  for (const char* function : {"cuEventRecord", "cuEventElapsedTime"}) {
    SCOPED_TRACE(function);
    trace_ = std::make_shared<TraceSink>();
    FailNothing();
    const int64_t before = Count(function);
    ASSERT_TRUE(program_->Run(trace_.get()).ok());
    int64_t calls = Count(function) - before;
    ASSERT_GE(calls, 4);
    // The last one recorded is the run's own.
    if (function == std::string("cuEventRecord")) --calls;
    for (int64_t i = 1; i <= calls; ++i) {
      trace_ = std::make_shared<TraceSink>();
      Fail(function, i, 1, Error::kUnknown);
      Status status = program_->Run(trace_.get());
      EXPECT_TRUE(status.ok()) << i << ": " << status.ToString();
      EXPECT_EQ(Lane("kernels").size(), all - 1) << i;
    }
  }
  FailNothing();
}

TEST_F(CudaTimelineTest, WithoutAnAnchorThereIsNothingToTell) {
  Open(false);
  // The first event is the run's.
  Fail("cuEventCreate", 2, 1000, Error::kUnknown);
  EXPECT_TRUE(program_->Run(trace_.get()).ok());
  EXPECT_EQ(trace_->size(), 0u);
  FailNothing();
  ExpectRun("events");
}

TEST_F(CudaTimelineTest, RecordsThatComeLateAreWaitedFor) {
  Open(true, "deferred=1");
  device_->SetTrace(trace_);
  auto first = program_->Start(trace_.get()), second = program_->Start(trace_.get());
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE((*first)->Wait().ok());
  // The records of what is done are in a buffer with that of the second run's graph.
  EXPECT_TRUE(Lane("kernels").empty());
  ASSERT_TRUE((*second)->Wait().ok());
  device_->SetTrace(nullptr);
  EXPECT_EQ(Lane("kernels").size(), 2 * program_->executable().program().launches.size());
  for (const TraceEvent& kernel : Lane("kernels")) EXPECT_EQ(ArgOf(kernel, "timed_by"), "records");
  EXPECT_EQ(Lane("graphs").size(), 1u);
}

TEST_F(CudaTimelineTest, ATimelineMayEndWhileWorkIsUnderWay) {
  for (bool has_cupti : {false, true}) {
    Open(has_cupti, "deferred=1");
    device_->SetTrace(trace_);
    ASSERT_TRUE(device_->FillZero(program_->arguments()[0], 4096).ok());
    auto completion = program_->Start(trace_.get());
    ASSERT_TRUE(completion.ok());
    device_->SetTrace(nullptr);
    ASSERT_EQ(Lane("copies").size(), 1u);
    EXPECT_EQ(Lane("copies")[0].name, "fill");
    ASSERT_TRUE((*completion)->Wait().ok());
    EXPECT_EQ(Lane("kernels").size(), program_->executable().program().launches.size());
    completion->reset();
    TearDown();
    SetUp();
    trace_ = std::make_shared<TraceSink>();
  }
}

TEST_F(CudaTimelineTest, TransfersInPiecesAreOneSpan) {
  for (bool has_cupti : {false, true}) {
    Open(has_cupti);
    device_->SetTrace(trace_);
    std::vector<std::byte> host(9 << 20);
    const auto bytes = static_cast<int64_t>(host.size());
    auto memory = device_->Allocate(bytes);
    ASSERT_TRUE(memory.ok());
    ASSERT_TRUE(device_->CopyFromHost(*memory, host.data(), bytes).ok());
    ASSERT_TRUE(device_->CopyToHost(host.data(), *memory, bytes).ok());
    device_->Deallocate(*memory, bytes);
    device_->SetTrace(nullptr);
    auto copies = Lane("copies");
    ASSERT_EQ(copies.size(), 2u);
    EXPECT_EQ(copies[0].name, "copy from host");
    EXPECT_EQ(copies[1].name, "copy to host");
    for (const TraceEvent& copy : copies) {
      EXPECT_EQ(ArgOf(copy, "bytes"), Cat(bytes));
      EXPECT_EQ(ArgOf(copy, "timed_by"), has_cupti ? "records" : "events");
    }
    TearDown();
    SetUp();
    trace_ = std::make_shared<TraceSink>();
  }
}

TEST_F(CudaTimelineTest, DevicesAndStreamsHaveLanesOfTheirOwn) {
  Open(true);
  GpuDevice other("XLA_GPU:0", machine_, 0);
  {
    TimedProgram program(other, kTwoKernels);
    void* stream = standin_.make_stream(nullptr, 0);
    ASSERT_TRUE(program_->Run(trace_.get()).ok());
    ASSERT_TRUE(program.Run(trace_.get()).ok());
    ASSERT_TRUE(program_->Run(trace_.get(), stream).ok());
    standin_.destroy_stream(stream);
    const size_t each = program.executable().program().launches.size();
    EXPECT_EQ(Lane("kernels").size(), each);
    EXPECT_EQ(LaneOf(*trace_, "XLA_GPU:0 kernels").size(), each);
    // The second run is a graph.
    const std::string name = Cat("GPU:0 stream ", reinterpret_cast<uintptr_t>(stream));
    EXPECT_EQ(LaneOf(*trace_, name + " kernels").size(), each);
    EXPECT_EQ(LaneOf(*trace_, name + " graphs").size(), 1u);
  }
}

TEST_F(CudaTimelineTest, ALostContextEndsTheTimelineWithoutHarm) {
  Open(false);
  ASSERT_TRUE(program_->Run(trace_.get()).ok());
  const size_t before = trace_->size();
  standin_.fail_work(static_cast<int>(Error::kIllegalAddress));
  EXPECT_FALSE(program_->Run(trace_.get()).ok());
  EXPECT_FALSE(program_->Run(trace_.get()).ok());
  EXPECT_EQ(trace_->size(), before);
}

TEST_F(CudaTimelineTest, ResourcesAsTheDriverReportsThem) {
  Open(false);
  std::string report = program_->executable().ResourceReport();
  const auto& program = program_->executable().program();
  EXPECT_EQ(std::count(report.begin(), report.end(), '\n'),
            static_cast<std::ptrdiff_t>(program.kernels.size()) + 4)
      << report;
  EXPECT_NE(report.find(program.kernels.at(0).grids.at(0).symbol), std::string::npos) << report;
  EXPECT_NE(report.find(" 40 "), std::string::npos) << report;
}

}  // namespace
}  // namespace kiln::device::cuda

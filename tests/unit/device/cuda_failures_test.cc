// Every call of the CUDA driver fails once: nothing leaks, the caller's context is as it was, and
// the machine works afterwards. And what is left when the GPU's work has failed for good.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "device/cuda/context.h"
#include "support/cuda_standin.h"

namespace kiln::device::cuda {
namespace {

// Memory that is given back at the end.
class Array {
 public:
  static Result<Array> Make(GpuMachine& machine, GpuStream& stream, int64_t bytes) {
    KILN_ASSIGN_OR_RETURN(std::byte * memory, machine.Allocate(bytes, stream));
    return Array(machine, stream, memory, bytes);
  }
  Array(Array&& other) noexcept
      : machine_(other.machine_), stream_(other.stream_), span_(other.span_) {
    other.span_ = {};
  }
  ~Array() { machine_.Free(span_.address, span_.bytes, stream_); }
  const GpuSpan& span() const { return span_; }

 private:
  Array(GpuMachine& machine, GpuStream& stream, std::byte* memory, int64_t bytes)
      : machine_(machine), stream_(stream), span_{memory, bytes} {}
  GpuMachine& machine_;
  GpuStream& stream_;
  GpuSpan span_;
};

struct Pinned {
  ~Pinned() { machine.FreePinned(memory, 64); }
  GpuMachine& machine;
  std::byte* memory = nullptr;
};

// Something of everything that a program does.
Status RunProgram(CudaMachine& machine) {
  KILN_ASSIGN_OR_RETURN(auto stream, machine.MakeStream());
  KILN_ASSIGN_OR_RETURN(auto other, machine.MakeStream());
  KILN_ASSIGN_OR_RETURN(auto event, machine.MakeEvent());
  Pinned pinned{machine};
  KILN_ASSIGN_OR_RETURN(pinned.memory, machine.AllocatePinned(64));
  KILN_ASSIGN_OR_RETURN(auto in, Array::Make(machine, *stream, 64));
  KILN_ASSIGN_OR_RETURN(auto out, Array::Make(machine, *stream, 64));
  KILN_RETURN_IF_ERROR(machine.Memory().status());
  std::fill_n(pinned.memory, 64, std::byte{3});
  KILN_RETURN_IF_ERROR(stream->CopyFromHost(in.span().address, pinned.memory, 64));

  KILN_ASSIGN_OR_RETURN(auto module, machine.Load(kPtx));
  KILN_ASSIGN_OR_RETURN(GpuKernel * kernel, module->Find("copy"));
  const std::array<GpuSpan, 2> args = {in.span(), out.span()};
  KILN_RETURN_IF_ERROR(stream->Launch(*kernel, {.shared_bytes = 64 << 10}, args));

  KILN_ASSIGN_OR_RETURN(auto graph, machine.MakeGraph());
  KILN_RETURN_IF_ERROR(graph->AddLaunch(*kernel, {}, args).status());
  KILN_ASSIGN_OR_RETURN(const int copy, graph->AddCopy(out.span().address, out.span().address, 64));
  // One turn, whose end is a choice's doing.
  KILN_ASSIGN_OR_RETURN(auto flags, Array::Make(machine, *stream, 64));
  KILN_RETURN_IF_ERROR(stream->Fill(flags.span().address, 0, 64));
  KILN_RETURN_IF_ERROR(stream->Fill(flags.span().address, 1, 1));
  KILN_ASSIGN_OR_RETURN(const int loop, graph->BeginWhile(flags.span().address + 1));
  KILN_RETURN_IF_ERROR(graph->AddLaunch(*kernel, {}, args).status());
  KILN_RETURN_IF_ERROR(graph->BeginBranches(flags.span().address, false, 3).status());
  KILN_RETURN_IF_ERROR(graph->NextBranch());
  KILN_RETURN_IF_ERROR(graph->AddCopy(flags.span().address, flags.span().address + 4, 1).status());
  KILN_RETURN_IF_ERROR(graph->NextBranch());
  KILN_RETURN_IF_ERROR(graph->End());
  KILN_RETURN_IF_ERROR(graph->End());
  KILN_RETURN_IF_ERROR(graph->Finish());
  KILN_RETURN_IF_ERROR(graph->SetLaunch(0, args));
  KILN_RETURN_IF_ERROR(graph->SetCondition(loop, flags.span().address));
  KILN_RETURN_IF_ERROR(graph->SetCopy(copy, out.span().address, in.span().address));
  KILN_RETURN_IF_ERROR(stream->Launch(*graph));
  KILN_RETURN_IF_ERROR(stream->Record(*event));
  KILN_RETURN_IF_ERROR(other->WaitFor(*event));
  KILN_RETURN_IF_ERROR(other->Fill(in.span().address, 0, 64));
  KILN_RETURN_IF_ERROR(event->IsDone().status());
  KILN_RETURN_IF_ERROR(event->Wait());

  std::array<uint8_t, 64> back = {};
  KILN_RETURN_IF_ERROR(stream->CopyToHost(back.data(), out.span().address, 64));
  KILN_RETURN_IF_ERROR(stream->Synchronise());
  KILN_RETURN_IF_ERROR(other->Synchronise());
  if (back[63] != 3) return DataLoss("the result is ", back[63]);
  KILN_RETURN_IF_ERROR(stream->CopyToHost(back.data(), flags.span().address, 1));
  KILN_RETURN_IF_ERROR(stream->Synchronise());
  return back[0] == 0 ? OkStatus() : DataLoss("the loop has had no turn");
}

struct Case {
  const char* name;
  const char* settings;
  bool code_folder;
  Error error;
};

class CudaFailures : public CudaTest, public ::testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    Configure(GetParam().settings);
    options_ = Options();
    if (GetParam().code_folder) {
      folder_ = Cat(::testing::TempDir(), "kiln_cuda_failures_", getpid());
      options_.cache = &cache_.emplace(folder_, DiskCache::kDefaultLimitBytes);
    }
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override {
    CudaTest::TearDown();
    std::filesystem::remove_all(folder_);
  }

  std::optional<DiskCache> cache_;
  CudaOptions options_;
  std::string folder_;
};

INSTANTIATE_TEST_SUITE_P(
    All, CudaFailures,
    ::testing::Values(Case{"Pools", "deferred=0", false, Error::kInvalidValue},
                      Case{"PoolsLater", "deferred=1", false, Error::kInvalidValue},
                      Case{"Blocks", "pools=0", false, Error::kInvalidValue},
                      Case{"BlocksLater", "pools=0,deferred=1", false, Error::kOutOfMemory},
                      Case{"Exhausted", "deferred=1", false, Error::kOutOfMemory},
                      Case{"Switch", "driver_version=12080", false, Error::kNotSupported},
                      Case{"CodeFolder", "deferred=1", true, Error::kUnknown}),
    [](const auto& info) { return info.param.name; });

TEST_P(CudaFailures, EachCallOnce) {
  int64_t failed = 0, calls = 0;
  for (int64_t n = 1;; ++n) {
    auto machine = Machine(options_);
    ASSERT_NE(machine, nullptr);
    std::filesystem::remove_all(folder_);
    Fail(nullptr, n, 1, GetParam().error);
    const Status status = RunProgram(*machine);
    calls = Count("calls");
    FailNothing();
    if (!status.ok()) {
      ++failed;
      EXPECT_NE(status.code(), Code::kDataLoss) << n << ": " << status.ToString();
    }
    EXPECT_EQ(Count("depth"), 0) << "call " << n;
    // The same machine works.
    const Status again = RunProgram(*machine);
    EXPECT_TRUE(again.ok()) << "after call " << n << ": " << again.ToString();
    machine.reset();
    EXPECT_EQ(Count("live"), 0) << "call " << n;
    EXPECT_EQ(Count("leaked"), 0) << "call " << n << ": " << status.ToString();
    EXPECT_EQ(Count("misuse"), 0) << "call " << n << ": " << status.ToString();
    if (HasFailure() || calls < n) break;
  }
  // What gives back, a third of all calls gives back the thread's context alone, is tried again.
  EXPECT_GT(failed, calls / 3);
  EXPECT_LT(failed, calls);
}

// From some call on, all fail: nothing works, and nothing hangs or crashes. What could not be given
// back to a driver that takes nothing is lost.
TEST_P(CudaFailures, AllCallsFromOneOn) {
  for (int64_t n = 1;; ++n) {
    auto machine = Machine(options_);
    ASSERT_NE(machine, nullptr);
    Fail(nullptr, n, int64_t{1} << 40, Error::kIllegalAddress);
    const Status status = RunProgram(*machine);
    const int64_t calls = Count("calls");
    if (calls >= n && !status.ok()) {
      EXPECT_NE(status.message().find("device context is lost"), std::string_view::npos)
          << status.ToString();
    }
    machine.reset();
    FailNothing();
    standin_.forget();
    if (HasFailure() || calls < n) break;
  }
}

class CudaLostContext : public CudaTest {};

TEST_F(CudaLostContext, IsToldByEveryWaitAndEndsWell) {
  for (const char* settings : {"deferred=0", "deferred=1,pools=0", "deferred=1,pools=1"}) {
    SCOPED_TRACE(settings);
    Configure(settings);
    auto machine = Machine();
    ASSERT_NE(machine, nullptr);
    ASSERT_TRUE(RunProgram(*machine).ok());
    auto stream = machine->MakeStream(), other = machine->MakeStream();
    auto event = machine->MakeEvent();
    auto module = machine->Load(kPtx);
    auto graph = machine->MakeGraph();
    ASSERT_TRUE(stream.ok() && other.ok() && event.ok() && module.ok() && graph.ok());
    auto memory = machine->Allocate(8, **stream);
    ASSERT_TRUE(memory.ok());
    ASSERT_TRUE((*graph)->AddCopy(*memory, *memory, 8).ok());
    ASSERT_TRUE((*graph)->Finish().ok());
    auto kernel = (*module)->Find("fill");
    ASSERT_TRUE(kernel.ok());

    standin_.fail_work(static_cast<int>(Error::kIllegalAddress));
    const GpuSpan span{*memory, 8};
    ASSERT_TRUE((*stream)->Launch(**kernel, {}, {&span, 1}).ok());
    (void)(*stream)->Record(**event);
    auto expect_lost = [](const Status& status) {
      EXPECT_EQ(status.code(), Code::kInternal);
      for (const char* part : {"GPU 0", "the device context is lost", "CUDA_ERROR_ILLEGAL_ADDRESS",
                               "an illegal memory access was encountered"}) {
        EXPECT_NE(status.message().find(part), std::string_view::npos) << status.ToString();
      }
    };
    expect_lost((*stream)->Synchronise());
    expect_lost((*stream)->Synchronise());
    expect_lost((*other)->Synchronise());
    expect_lost((*event)->Wait());
    expect_lost((*event)->IsDone().status());
    expect_lost((*stream)->Launch(**kernel, {}, {&span, 1}));
    expect_lost((*stream)->Launch(**graph));
    expect_lost(machine->Allocate(8, **stream).status());
    expect_lost(machine->Memory().status());
    expect_lost(machine->MakeStream().status());
    expect_lost(machine->Load(Cat(kPtx, "//")).status());
    expect_lost(machine->WrapStream(nullptr).status());
    machine->Free(*memory, 8, **stream);
  }
}

// A wrong address is found by the GPU.
TEST_F(CudaLostContext, KernelsWithWrongAddresses) {
  auto machine = Machine();
  ASSERT_NE(machine, nullptr);
  auto stream = machine->MakeStream();
  ASSERT_TRUE(stream.ok());
  auto module = machine->Load(kPtx);
  ASSERT_TRUE(module.ok());
  auto kernel = (*module)->Find("fill");
  ASSERT_TRUE(kernel.ok());
  std::byte here;
  const GpuSpan span{&here, 1};
  (void)(*stream)->Launch(**kernel, {}, {&span, 1});
  EXPECT_NE((*stream)->Synchronise().message().find("device context is lost"),
            std::string_view::npos);
}

// The calling thread's own context is current again after every call.
TEST_F(CudaLostContext, CallersContextStays) {
  auto driver = LoadDriver(Options().library);
  ASSERT_TRUE(driver.ok()) << driver.status().ToString();
  const Functions& api = (*driver)->api();
  void* theirs = standin_.make_context(0);
  ASSERT_EQ(api.CtxPushCurrent.call(static_cast<ContextHandle>(theirs)), Error::kSuccess);
  auto machine = Machine();
  ASSERT_NE(machine, nullptr);
  EXPECT_TRUE(RunProgram(*machine).ok());
  machine.reset();
  ContextHandle popped = nullptr;
  ASSERT_EQ(api.CtxPopCurrent.call(&popped), Error::kSuccess);
  EXPECT_EQ(popped, theirs);
  standin_.destroy_context(theirs);
}

}  // namespace
}  // namespace kiln::device::cuda

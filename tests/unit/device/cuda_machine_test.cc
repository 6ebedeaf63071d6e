// Memory, streams, events, launches and graphs of a CUDA machine, against the stand-in.

#include <algorithm>
#include <array>
#include <limits>
#include <thread>
#include <vector>

#include "support/cuda_standin.h"

namespace kiln::device::cuda {
namespace {

#define ASSERT_OK(expression)                        \
  do {                                               \
    const Status status_ = (expression);             \
    ASSERT_TRUE(status_.ok()) << status_.ToString(); \
  } while (0)

class CudaMachineTest : public CudaTest {
 protected:
  void Open(const CudaOptions& options) {
    machine_ = Machine(options);
    ASSERT_NE(machine_, nullptr);
    auto stream = machine_->MakeStream();
    ASSERT_OK(stream.status());
    stream_ = *std::move(stream);
  }
  void Open() { Open(Options()); }
  void TearDown() override {
    stream_.reset();
    machine_.reset();
    CudaTest::TearDown();
  }
  std::byte* Allocate(int64_t bytes) {
    auto memory = machine_->Allocate(bytes, *stream_);
    EXPECT_TRUE(memory.ok()) << memory.status().ToString();
    return memory.ok() ? *memory : nullptr;
  }
  void Free(std::byte* memory, int64_t bytes) { machine_->Free(memory, bytes, *stream_); }
  void ExpectError(const Status& status, Code code, std::initializer_list<const char*> parts) {
    EXPECT_EQ(status.code(), code) << status.ToString();
    for (const char* part : parts) {
      EXPECT_NE(status.message().find(part), std::string_view::npos) << status.ToString();
    }
  }

  std::unique_ptr<CudaMachine> machine_;
  std::unique_ptr<GpuStream> stream_;
};

// Everything once with the driver's pools, once without.
class CudaMemory : public CudaMachineTest, public ::testing::WithParamInterface<bool> {
 protected:
  void OpenWith(const std::string& settings, int64_t limit = 0) {
    Configure(Cat("pools=", GetParam() ? 1 : 0, settings.empty() ? "" : ",", settings));
    CudaOptions options = Options();
    options.memory_limit_bytes = limit;
    Open(options);
  }
};
INSTANTIATE_TEST_SUITE_P(Pools, CudaMemory, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "WithPools" : "WithoutPools");
});

TEST_P(CudaMemory, CopiesThere) {
  OpenWith("");
  std::array<char, 5> there = {'k', 'i', 'l', 'n', '!'}, back = {};
  std::byte* a = Allocate(5);
  std::byte* b = Allocate(5);
  ASSERT_NE(a, b);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 256, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % 256, 0u);
  ASSERT_OK(stream_->CopyFromHost(a, there.data(), 5));
  ASSERT_OK(stream_->Copy(b, a, 5));
  ASSERT_OK(stream_->Fill(b + 1, 'a', 1));
  ASSERT_OK(stream_->CopyToHost(back.data(), b, 5));
  ASSERT_OK(stream_->Synchronise());
  EXPECT_EQ(std::string(back.data(), 5), "kaln!");
  // Of nothing there is nothing to copy, wherever it is.
  ASSERT_OK(stream_->CopyFromHost(nullptr, nullptr, 0));
  ASSERT_OK(stream_->CopyToHost(nullptr, nullptr, 0));
  ASSERT_OK(stream_->Copy(nullptr, nullptr, 0));
  ASSERT_OK(stream_->Fill(nullptr, 0, 0));
  Free(a, 5);
  Free(b, 5);
}

TEST_P(CudaMemory, NoBytesAreAnAddressOfTheirOwn) {
  OpenWith("");
  std::byte* a = Allocate(0);
  std::byte* b = Allocate(0);
  EXPECT_NE(a, nullptr);
  EXPECT_NE(a, b);
  Free(a, 0);
  Free(b, 0);
  Free(nullptr, 10);
}

TEST_P(CudaMemory, WhatIsFreedIsFree) {
  OpenWith("memory_bytes=1000000");
  auto info = machine_->Memory();
  ASSERT_OK(info.status());
  EXPECT_EQ(info->total_bytes, 1000000);
  EXPECT_EQ(info->free_bytes, 1000000);
  std::byte* memory = Allocate(1 << 19);
  info = machine_->Memory();
  ASSERT_OK(info.status());
  EXPECT_EQ(info->free_bytes, 1000000 - (1 << 19));
  Free(memory, 1 << 19);
  // Kept, and free all the same.
  info = machine_->Memory();
  ASSERT_OK(info.status());
  EXPECT_EQ(info->free_bytes, 1000000);
}

TEST_P(CudaMemory, SizesThatAreKeptComeAgain) {
  OpenWith("");
  for (int i = 0; i < 10; ++i) Free(Allocate(100000), 100000);
  if (!GetParam()) EXPECT_EQ(Count("cuMemAlloc_v2"), 1);
  EXPECT_LE(Count("memory"), 1);
}

// What is kept of other sizes is given back before anyone is told that there is no more.
TEST_P(CudaMemory, ExhaustedMemoryIsTriedAgain) {
  OpenWith("memory_bytes=1000000");
  std::byte* first = Allocate(400000);
  std::byte* second = Allocate(400000);
  Free(first, 400000);
  Free(second, 400000);
  std::byte* large = Allocate(900000);
  ASSERT_NE(large, nullptr);
  Free(large, 900000);
}

// Memory whose work is still to be done is waited for.
TEST_P(CudaMemory, ExhaustedMemoryWaitsForWork) {
  OpenWith("memory_bytes=1000000,deferred=1");
  std::byte* first = Allocate(600000);
  ASSERT_OK(stream_->Fill(first, 1, 600000));
  Free(first, 600000);
  std::byte* second = Allocate(900000);
  ASSERT_NE(second, nullptr);
  ASSERT_OK(stream_->Fill(second, 2, 900000));
  Free(second, 900000);
  ASSERT_OK(stream_->Synchronise());
}

TEST_P(CudaMemory, Exhausted) {
  OpenWith("memory_bytes=1000000");
  std::byte* memory = Allocate(600000);
  auto more = machine_->Allocate(500000, *stream_);
  ASSERT_FALSE(more.ok());
  ExpectError(more.status(), Code::kResourceExhausted,
              {"GPU 0", "500000 bytes asked for", "600000 in use", "free of 1000000"});
  // All is usable.
  ASSERT_OK(stream_->Fill(memory, 0, 600000));
  std::byte* small = Allocate(1000);
  Free(small, 1000);
  Free(memory, 600000);
  std::byte* again = Allocate(500000);
  Free(again, 500000);
  for (int64_t bytes : {int64_t{1} << 60, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(machine_->Allocate(bytes, *stream_).status().code(), Code::kResourceExhausted);
  }
  EXPECT_EQ(machine_->Allocate(-1, *stream_).status().code(), Code::kInvalidArgument);
}

TEST_P(CudaMemory, Limit) {
  OpenWith("", 100000);
  std::byte* memory = Allocate(60000);
  auto more = machine_->Allocate(50000, *stream_);
  ASSERT_FALSE(more.ok());
  ExpectError(more.status(), Code::kResourceExhausted,
              {"50000 bytes asked for", "60000 in use of at most 100000"});
  auto info = machine_->Memory();
  ASSERT_OK(info.status());
  EXPECT_EQ(info->total_bytes, 100000);
  EXPECT_EQ(info->free_bytes, 40000);
  std::byte* rest = Allocate(40000);
  Free(memory, 60000);
  Free(rest, 40000);
  Free(Allocate(100000), 100000);
}

// Without pools, a stream's memory is another's only when nothing of the first can be using it.
TEST_F(CudaMachineTest, StreamsDoNotTakeEachOthersMemory) {
  Configure("pools=0");
  Open();
  auto other = machine_->MakeStream();
  ASSERT_OK(other.status());
  std::byte* memory = Allocate(4096);
  Free(memory, 4096);
  auto theirs = machine_->Allocate(4096, **other);
  ASSERT_OK(theirs.status());
  EXPECT_NE(*theirs, memory);
  machine_->Free(*theirs, 4096, **other);
  EXPECT_EQ(Allocate(4096), memory);
  std::byte* second = Allocate(4096);
  EXPECT_NE(second, *theirs);
  // With its stream gone, it is anyone's.
  other->reset();
  EXPECT_EQ(Allocate(4096), *theirs);
  for (std::byte* each : {memory, second, *theirs}) Free(each, 4096);
}

TEST_P(CudaMemory, ManyThreads) {
  OpenWith("");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      auto stream = machine_->MakeStream();
      ASSERT_OK(stream.status());
      for (int64_t i = 0; i < 200; ++i) {
        const int64_t bytes = 1 + (i * 977 + t) % 5000;
        auto memory = machine_->Allocate(bytes, **stream);
        ASSERT_OK(memory.status());
        ASSERT_OK((*stream)->Fill(*memory, static_cast<uint8_t>(t), bytes));
        std::vector<uint8_t> back(static_cast<size_t>(bytes));
        ASSERT_OK((*stream)->CopyToHost(back.data(), *memory, bytes));
        ASSERT_OK((*stream)->Synchronise());
        EXPECT_EQ(std::count(back.begin(), back.end(), t), bytes);
        machine_->Free(*memory, bytes, **stream);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(CudaMachineTest, PinnedMemoryIsCopiedLater) {
  Configure("deferred=1");
  Open();
  auto pinned = machine_->AllocatePinned(4);
  ASSERT_OK(pinned.status());
  std::byte* memory = Allocate(4);
  ASSERT_OK(stream_->Fill(memory, 7, 4));
  std::fill_n(*pinned, 4, std::byte{0});
  ASSERT_OK(stream_->CopyToHost(*pinned, memory, 4));
  EXPECT_EQ((*pinned)[3], std::byte{0});
  ASSERT_OK(stream_->Synchronise());
  EXPECT_EQ((*pinned)[3], std::byte{7});
  Free(memory, 4);
  machine_->FreePinned(*pinned, 4);
  auto none = machine_->AllocatePinned(0);
  ASSERT_OK(none.status());
  machine_->FreePinned(*none, 0);
  machine_->FreePinned(nullptr, 0);
  Fail("cuMemAllocHost_v2", 1, 1, Error::kOutOfMemory);
  ExpectError(machine_->AllocatePinned(12345).status(), Code::kResourceExhausted,
              {"12345 bytes of pinned host memory"});
}

TEST_F(CudaMachineTest, Events) {
  Configure("deferred=1");
  Open();
  auto event = machine_->MakeEvent();
  ASSERT_OK(event.status());
  std::byte* memory = Allocate(16);
  ASSERT_OK(stream_->Fill(memory, 1, 16));
  ASSERT_OK(stream_->Record(**event));
  auto other = machine_->MakeStream();
  ASSERT_OK(other.status());
  ASSERT_OK((*other)->WaitFor(**event));
  auto done = (*event)->IsDone();
  ASSERT_OK(done.status());
  EXPECT_FALSE(*done);
  ASSERT_OK((*event)->Wait());
  done = (*event)->IsDone();
  ASSERT_OK(done.status());
  EXPECT_TRUE(*done);
  // Again.
  ASSERT_OK(stream_->Record(**event));
  done = (*event)->IsDone();
  ASSERT_OK(done.status());
  EXPECT_FALSE(*done);
  ASSERT_OK(stream_->Synchronise());
  Free(memory, 16);
}

TEST_F(CudaMachineTest, TimedEvents) {
  Open();
  auto from = machine_->MakeTimedEvent(), to = machine_->MakeTimedEvent();
  ASSERT_OK(from.status());
  ASSERT_OK(to.status());
  std::byte* memory = Allocate(16);
  ASSERT_OK(stream_->Record(**from));
  ASSERT_OK(stream_->Fill(memory, 1, 16));
  ASSERT_OK(stream_->Record(**to));
  ASSERT_OK(stream_->Synchronise());
  auto elapsed = machine_->ElapsedMicroseconds(**from, **to);
  ASSERT_OK(elapsed.status());
  EXPECT_EQ(*elapsed, 2000);
  auto untimed = machine_->MakeEvent();
  ASSERT_OK(untimed.status());
  EXPECT_FALSE(machine_->ElapsedMicroseconds(**untimed, **to).ok());
  Free(memory, 16);
}

class CudaLaunch : public CudaMachineTest {
 protected:
  void Open() {
    CudaMachineTest::Open();
    auto module = machine_->Load(kPtx);
    ASSERT_OK(module.status());
    module_ = *std::move(module);
    auto copy = module_->Find("copy"), fill = module_->Find("fill");
    ASSERT_OK(copy.status());
    ASSERT_OK(fill.status());
    copy_ = *copy;
    fill_ = *fill;
    for (GpuSpan& span : spans_) span = {Allocate(100), 100};
  }
  void TearDown() override {
    if (machine_ != nullptr) {
      for (GpuSpan& span : spans_) Free(span.address, span.bytes);
    }
    module_.reset();
    CudaMachineTest::TearDown();
  }

  std::unique_ptr<GpuModule> module_;
  GpuKernel* copy_ = nullptr;
  GpuKernel* fill_ = nullptr;
  std::array<GpuSpan, 3> spans_;
};

TEST_F(CudaLaunch, RunsOnItsArguments) {
  Open();
  ASSERT_OK(stream_->Launch(*copy_, {.blocks = 3, .threads = 64}, std::span(spans_).first(2)));
  ASSERT_OK(stream_->Launch(*fill_, {}, std::span(spans_).first(1)));
  ASSERT_OK(stream_->Synchronise());
  EXPECT_EQ(Count("launches"), 2);
  EXPECT_EQ(copy_->resources().registers, 40);
  EXPECT_EQ(copy_->resources().local_bytes, 16);
  EXPECT_EQ(copy_->resources().shared_bytes, 256);
  EXPECT_GT(module_->code_bytes(), 0);
  ExpectError(module_->Find("nowhere").status(), Code::kNotFound,
              {"nowhere", "CUDA_ERROR_NOT_FOUND"});
}

TEST_F(CudaLaunch, ManyParameters) {
  Open();
  std::string ptx = ".version 7.0\n.target sm_75\n.entry many(";
  for (int i = 0; i < 100; ++i) ptx += Cat(i > 0 ? "," : "", " .param .u64 p", i);
  auto module = machine_->Load(ptx + ") { ret; }");
  ASSERT_OK(module.status());
  auto many = (*module)->Find("many");
  ASSERT_OK(many.status());
  const std::vector<GpuSpan> args(100, spans_[1]);
  ASSERT_OK(stream_->Launch(**many, {}, args));
  ASSERT_OK(stream_->Synchronise());
}

TEST_F(CudaLaunch, SharedMemory) {
  Open();
  auto launch = [&](int64_t bytes) {
    return stream_->Launch(*fill_, {.shared_bytes = bytes}, std::span(spans_).first(1));
  };
  ASSERT_OK(launch(48 << 10));
  EXPECT_EQ(Count("cuFuncSetAttribute"), 0);
  ASSERT_OK(launch(64 << 10));
  ASSERT_OK(launch(60 << 10));
  ASSERT_OK(launch(64 << 10));
  EXPECT_EQ(Count("cuFuncSetAttribute"), 1);
  ASSERT_OK(launch(99 << 10));
  ExpectError(launch(100 << 10), Code::kInternal, {"cuFuncSetAttribute"});
  ASSERT_OK(launch(64 << 10));
  EXPECT_EQ(Count("cuFuncSetAttribute"), 3);
}

TEST_F(CudaLaunch, GridsThatCannotBe) {
  Open();
  auto args = std::span(spans_).first(1);
  ASSERT_OK(stream_->Launch(*fill_, {.blocks = 0x7fffffff}, args));
  for (int64_t blocks : {int64_t{0}, int64_t{-1}, int64_t{1} << 31, int64_t{1} << 32}) {
    ExpectError(stream_->Launch(*fill_, {.blocks = blocks}, args), Code::kInvalidArgument,
                {"blocks"});
  }
  for (int threads : {0, 1025}) {
    ExpectError(stream_->Launch(*fill_, {.threads = threads}, args), Code::kInvalidArgument,
                {"threads"});
  }
  ExpectError(stream_->Launch(*fill_, {.shared_bytes = -1}, args), Code::kInvalidArgument,
              {"shared memory"});
  EXPECT_EQ(Count("launches"), 1);
}

TEST_F(CudaLaunch, Graphs) {
  Open();
  auto made = machine_->MakeGraph();
  ASSERT_OK(made.status());
  GpuGraph& graph = **made;
  EXPECT_EQ(stream_->Launch(graph).code(), Code::kInternal);
  auto copies = graph.AddCopy(spans_[1].address, spans_[0].address, 100);
  auto launches = graph.AddLaunch(*copy_, {.blocks = 2}, std::span(spans_).first(2));
  auto nothing = graph.AddCopy(nullptr, nullptr, 0);
  auto again = graph.AddCopy(spans_[2].address, spans_[1].address, 100);
  for (const auto* node : {&copies, &launches, &nothing, &again}) ASSERT_OK(node->status());
  EXPECT_EQ(graph.AddLaunch(*copy_, {.blocks = 0}, spans_).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(graph.SetCopy(*copies, nullptr, nullptr).code(), Code::kInternal);
  ASSERT_OK(graph.Finish());
  EXPECT_EQ(graph.Finish().code(), Code::kInternal);
  EXPECT_EQ(graph.AddCopy(nullptr, nullptr, 0).status().code(), Code::kInternal);

  std::array<uint8_t, 100> back;
  ASSERT_OK(stream_->Fill(spans_[0].address, 5, 100));
  ASSERT_OK(stream_->Launch(graph));
  ASSERT_OK(stream_->CopyToHost(back.data(), spans_[2].address, 100));
  ASSERT_OK(stream_->Synchronise());
  EXPECT_EQ(back[99], 5);
  EXPECT_EQ(Count("launches"), 1);

  // Other addresses: the first copy goes to the third array, and the last one from there.
  ASSERT_OK(stream_->Fill(spans_[0].address, 6, 100));
  ASSERT_OK(graph.SetCopy(*copies, spans_[2].address, spans_[0].address));
  ASSERT_OK(graph.SetCopy(*again, spans_[1].address, spans_[2].address));
  ASSERT_OK(graph.SetCopy(*nothing, nullptr, nullptr));
  ASSERT_OK(graph.SetLaunch(*launches, std::span(spans_).last(2)));
  ASSERT_OK(stream_->Launch(graph));
  ASSERT_OK(stream_->CopyToHost(back.data(), spans_[1].address, 100));
  ASSERT_OK(stream_->Synchronise());
  EXPECT_EQ(back[99], 6);

  EXPECT_EQ(graph.SetCopy(*launches, nullptr, nullptr).code(), Code::kInternal);
  EXPECT_EQ(graph.SetLaunch(*copies, {}).code(), Code::kInternal);
  EXPECT_EQ(graph.SetLaunch(*launches, {}).code(), Code::kInternal);
  EXPECT_EQ(graph.SetLaunch(17, {}).code(), Code::kInternal);
}

// Where the driver does not take another address for a node, all nodes keep what they were set to.
TEST_F(CudaLaunch, GraphsWhoseNodesAreNotTaken) {
  Open();
  auto made = machine_->MakeGraph();
  ASSERT_OK(made.status());
  GpuGraph& graph = **made;
  auto first = graph.AddCopy(spans_[1].address, spans_[0].address, 100);
  auto second = graph.AddCopy(spans_[0].address, spans_[0].address, 100);
  ASSERT_OK(first.status());
  ASSERT_OK(second.status());
  auto third = graph.AddLaunch(*fill_, {}, std::span(spans_).first(1));
  ASSERT_OK(third.status());
  ASSERT_OK(graph.Finish());
  ASSERT_OK(graph.SetCopy(*first, spans_[1].address, spans_[2].address));
  Fail("cuGraphExecMemcpyNodeSetParams", 1, 1, Error::kInvalidValue);
  ASSERT_OK(graph.SetCopy(*second, spans_[0].address, spans_[1].address));
  EXPECT_EQ(Count("graphs"), 1);
  EXPECT_EQ(Count("execs"), 1);
  std::array<uint8_t, 100> back;
  auto expect_after_launch = [&](uint8_t value) {
    ASSERT_OK(stream_->Fill(spans_[2].address, value, 100));
    ASSERT_OK(stream_->Launch(graph));
    ASSERT_OK(stream_->CopyToHost(back.data(), spans_[0].address, 100));
    ASSERT_OK(stream_->Synchronise());
    EXPECT_EQ(back[50], value);
  };
  expect_after_launch(9);
  // Refused for good, the graph is what it was, also when it is made anew after that.
  std::byte nowhere;
  const GpuSpan wrong{&nowhere, 1};
  Fail(nullptr, 1, 1000, Error::kInvalidValue);
  EXPECT_FALSE(graph.SetCopy(*second, &nowhere, &nowhere).ok());
  EXPECT_FALSE(graph.SetLaunch(*third, {&wrong, 1}).ok());
  FailNothing();
  expect_after_launch(11);
  Fail("cuGraphExecMemcpyNodeSetParams", 1, 1, Error::kInvalidValue);
  ASSERT_OK(graph.SetCopy(*first, spans_[1].address, spans_[2].address));
  expect_after_launch(12);
}

// Launches that are under way keep their addresses.
TEST_F(CudaLaunch, GraphsAreSetBetweenLaunches) {
  Configure("deferred=1");
  Open();
  auto made = machine_->MakeGraph();
  ASSERT_OK(made.status());
  GpuGraph& graph = **made;
  auto node = graph.AddCopy(spans_[1].address, spans_[0].address, 100);
  ASSERT_OK(node.status());
  ASSERT_OK(graph.Finish());
  ASSERT_OK(stream_->Fill(spans_[0].address, 1, 100));
  ASSERT_OK(stream_->Fill(spans_[2].address, 2, 100));
  ASSERT_OK(stream_->Launch(graph));
  ASSERT_OK(graph.SetCopy(*node, spans_[0].address, spans_[2].address));
  ASSERT_OK(stream_->Launch(graph));
  std::array<uint8_t, 2> back;
  ASSERT_OK(stream_->CopyToHost(&back[0], spans_[1].address, 1));
  ASSERT_OK(stream_->CopyToHost(&back[1], spans_[0].address, 1));
  ASSERT_OK(stream_->Synchronise());
  EXPECT_EQ(back[0], 1);
  EXPECT_EQ(back[1], 2);
}

TEST_F(CudaMachineTest, WrappedStreams) {
  Open();
  void* theirs = standin_.make_stream(nullptr, 0);
  {
    auto wrapped = machine_->WrapStream(theirs);
    ASSERT_OK(wrapped.status());
    auto memory = machine_->Allocate(8, **wrapped);
    ASSERT_OK(memory.status());
    ASSERT_OK((*wrapped)->Fill(*memory, 3, 8));
    ASSERT_OK((*wrapped)->Synchronise());
    machine_->Free(*memory, 8, **wrapped);
  }
  // It is theirs still.
  EXPECT_EQ(Count("streams"), 2);
  standin_.destroy_stream(theirs);
  // The default stream is the primary context's.
  auto standard = machine_->WrapStream(nullptr);
  ASSERT_OK(standard.status());
  ASSERT_OK((*standard)->Synchronise());
  Fail("cuStreamGetCtx", 1, 1, Error::kInvalidHandle);
  ExpectError(machine_->WrapStream(theirs).status(), Code::kInvalidArgument, {"is none"});
}

TEST_F(CudaMachineTest, StreamsOfOtherContexts) {
  Configure("devices=2");
  CudaDevices devices = Discover(Options());
  ASSERT_EQ(devices.machines.size(), 2u);
  void* context = standin_.make_context(0);
  void* stream = standin_.make_stream(context, 0);
  ExpectError(devices.machines[0]->WrapStream(stream).status(), Code::kUnimplemented,
              {"not the primary one of GPU 0"});
  ExpectError(devices.machines[1]->WrapStream(stream).status(), Code::kInvalidArgument,
              {"belongs to CUDA device 0, not to GPU 1"});
  standin_.destroy_stream(stream);
  standin_.destroy_context(context);
}

}  // namespace
}  // namespace kiln::device::cuda

// The emulated GPU as a machine: streams that are lazy and in order, events, memory, graphs, and
// what comes of work that fails.

#include "device/emulated/machine.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "base/strings.h"
#include "support/emulated.h"
#include "support/guarded_memory.h"

namespace kiln {
namespace {

using device::EmulatedMachine;
using device::GpuGrid;
using device::GpuSpan;
using llvm::Value;
using testing::HandWritten;

constexpr int64_t kCount = 64, kBytes = kCount * 4;
constexpr GpuGrid kGrid{2, 32};

// out[i] = in[i] * 2 + 1
std::string TwicePlusOne() {
  HandWritten kernel(
      2,
      [](llvm::IRBuilder<>& b, codegen::GpuPrimitives& gpu, llvm::Function* f) {
        Value* i = b.CreateAdd(b.CreateMul(gpu.Block(), b.getInt64(32)), gpu.Thread());
        auto at = [&](unsigned p) { return b.CreateGEP(b.getInt32Ty(), f->getArg(p), i); };
        Value* in = b.CreateLoad(b.getInt32Ty(), at(0));
        Value* twice = b.CreateMul(in, b.getInt32(2));
        b.CreateStore(b.CreateAdd(twice, b.getInt32(1)), at(1));
      },
      "twice");
  EXPECT_EQ(kernel.status().ToString(), "OK");
  return kernel.object();
}

class EmulatedMachines : public ::testing::Test {
 protected:
  EmulatedMachines() : in(kCount), out(kCount, -1) {
    EmulatedMachine::Options options;
    options.memory_bytes = 1 << 20;
    machine =
        EmulatedMachine::Create(target::EmulatedGpu(80).value(), pool, allocator, options).value();
    stream = machine->MakeStream().value();
    module = machine->Load(TwicePlusOne()).value();
    kernel = module->Find("twice").value();
    std::iota(in.begin(), in.end(), 0);
    a = machine->Allocate(kBytes, *stream).value();
    b = machine->Allocate(kBytes, *stream).value();
  }
  ~EmulatedMachines() override {
    machine->Free(a, kBytes, *stream);
    machine->Free(b, kBytes, *stream);
    module.reset();
    stream.reset();
    EXPECT_EQ(machine->Memory().value().free_bytes, 1 << 20);
    machine.reset();
    EXPECT_EQ(allocator.live_bytes(), 0);
  }
  std::vector<int32_t> Expected(int times) {
    std::vector<int32_t> values = in;
    for (; times > 0; --times) {
      for (int32_t& x : values) x = x * 2 + 1;
    }
    return values;
  }
  Status Launch(device::GpuStream& s, std::byte* from, std::byte* to, int64_t bytes = kBytes) {
    GpuSpan args[] = {{from, bytes}, {to, bytes}};
    return s.Launch(*kernel, kGrid, args);
  }

  runtime::ThreadPool pool{2};
  runtime::Allocator allocator{testing::GuardedMemory()};
  std::unique_ptr<EmulatedMachine> machine;
  std::unique_ptr<device::GpuStream> stream;
  std::unique_ptr<device::GpuModule> module;
  device::GpuKernel* kernel = nullptr;
  std::vector<int32_t> in, out;
  std::byte *a = nullptr, *b = nullptr;
};

TEST_F(EmulatedMachines, WorkIsDoneInOrderWhenSomebodyWaits) {
  EXPECT_EQ(machine->description(), "emulated GPU, sm_80");
  EXPECT_GT(module->code_bytes(), 0);
  EXPECT_EQ(kernel->resources().registers, -1);
  EXPECT_TRUE(stream->CopyFromHost(a, in.data(), kBytes).ok());
  EXPECT_TRUE(Launch(*stream, a, b).ok());
  EXPECT_TRUE(stream->Copy(a, b, kBytes).ok());
  EXPECT_TRUE(stream->CopyToHost(out.data(), a, kBytes).ok());
  EXPECT_EQ(out, std::vector<int32_t>(kCount, -1));  // not yet
  EXPECT_EQ(stream->Synchronise().ToString(), "OK");
  EXPECT_EQ(out, Expected(1));
  EXPECT_TRUE(stream->Fill(a, 7, kBytes).ok());
  EXPECT_TRUE(stream->CopyToHost(out.data(), a, kBytes).ok());
  EXPECT_TRUE(stream->Synchronise().ok());
  EXPECT_EQ(out, std::vector<int32_t>(kCount, 0x07070707));
}

TEST_F(EmulatedMachines, EventsOrderStreams) {
  auto other = machine->MakeStream().value();
  auto event = machine->MakeEvent().value(), last = machine->MakeEvent().value();
  EXPECT_TRUE(event->IsDone().value());  // nothing has been recorded
  EXPECT_TRUE(event->Wait().ok());
  EXPECT_TRUE(stream->CopyFromHost(a, in.data(), kBytes).ok());
  EXPECT_TRUE(stream->Record(*event).ok());
  // This is after the event, and not waited for.
  EXPECT_TRUE(stream->Fill(b, 0, kBytes).ok());
  EXPECT_TRUE(other->WaitFor(*event).ok());
  EXPECT_TRUE(Launch(*other, a, b).ok());
  EXPECT_TRUE(other->CopyToHost(out.data(), b, kBytes).ok());
  EXPECT_TRUE(other->Record(*last).ok());
  EXPECT_TRUE(stream->WaitFor(*last).ok());
  EXPECT_TRUE(stream->Fill(b, 1, kBytes).ok());
  // Asking again and again comes to an end.
  int asked = 1;
  while (!last->IsDone().value()) ++asked;
  EXPECT_GT(asked, 1);
  EXPECT_EQ(out, Expected(1));
  EXPECT_TRUE(event->IsDone().value());
  EXPECT_TRUE(stream->Synchronise().ok());
  EXPECT_EQ(static_cast<int>(*b), 1);
}

// What gathers is done at some time, and what is left when the stream ends.
TEST_F(EmulatedMachines, NothingIsForgotten) {
  EXPECT_TRUE(stream->CopyFromHost(a, in.data(), kBytes).ok());
  EXPECT_TRUE(stream->CopyToHost(out.data(), a, kBytes).ok());
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(stream->Fill(b, 1, 1).ok());
  EXPECT_EQ(out, in);
  auto other = machine->MakeStream().value();
  EXPECT_TRUE(other->Fill(b, 9, kBytes).ok());
  other.reset();
  EXPECT_EQ(static_cast<int>(*b), 9);
}

TEST_F(EmulatedMachines, FailuresAreThoseOfTheNextEvent) {
  EXPECT_TRUE(stream->Fill(a, 0, kBytes).ok());
  EXPECT_TRUE(Launch(*stream, a, b, kBytes - 4).ok());
  EXPECT_TRUE(Launch(*stream, a, b, kBytes - 8).ok());
  EXPECT_TRUE(stream->CopyFromHost(a, in.data(), kBytes).ok());
  EXPECT_EQ(stream->Synchronise().ToString(),
            "INTERNAL: kernel twice, block 1, thread 31: load of 4 bytes out of bounds at offset "
            "252 of parameter 0, which has 252 bytes");
  EXPECT_EQ(stream->Synchronise().ToString(), "OK");
  // Everything goes on.
  EXPECT_TRUE(Launch(*stream, a, b).ok());
  EXPECT_TRUE(stream->CopyToHost(out.data(), b, kBytes).ok());
  EXPECT_EQ(stream->Synchronise().ToString(), "OK");
  EXPECT_EQ(out, Expected(1));
  // An event tells what failed before it and after the one before, as often as it is asked.
  auto event = machine->MakeEvent().value();
  EXPECT_TRUE(stream->Record(*event).ok());
  EXPECT_TRUE(Launch(*stream, a, b, 4).ok());
  EXPECT_TRUE(event->Wait().ok());
  EXPECT_TRUE(stream->Record(*event).ok());
  auto later = machine->MakeEvent().value();
  EXPECT_TRUE(stream->Record(*later).ok());
  EXPECT_TRUE(later->Wait().ok());
  EXPECT_EQ(event->Wait().code(), Code::kInternal);
  EXPECT_EQ(event->Wait().code(), Code::kInternal);
  EXPECT_TRUE(stream->Synchronise().ok());
}

TEST_F(EmulatedMachines, CopiesAndParametersAreInsideOfAllocations) {
  auto failure = [&] { return std::string(stream->Synchronise().message()); };
  EXPECT_TRUE(stream->Copy(a, b + 4, kBytes).ok());
  EXPECT_EQ(failure(), "the source of a copy: 256 bytes at offset 4 of an allocation of 256 bytes");
  EXPECT_TRUE(stream->CopyToHost(out.data(), reinterpret_cast<std::byte*>(in.data()), 4).ok());
  EXPECT_EQ(failure(), "the source of a copy: 4 bytes that are not allocated on the emulated GPU");
  EXPECT_TRUE(stream->CopyFromHost(a, in.data(), kBytes + 1).ok());
  EXPECT_EQ(failure(),
            "the destination of a copy: 257 bytes at offset 0 of an allocation of 256 bytes");
  EXPECT_TRUE(stream->Fill(a + kBytes, 0, 1).ok());
  EXPECT_NE(failure(), "");
  EXPECT_TRUE(stream->Fill(a + kBytes, 0, 0).ok());
  EXPECT_EQ(failure(), "");
  // Freed in the stream's order.
  std::byte* c = machine->Allocate(kBytes, *stream).value();
  EXPECT_TRUE(Launch(*stream, c, b).ok());
  machine->Free(c, kBytes, *stream);
  EXPECT_EQ(failure(), "");
  EXPECT_TRUE(Launch(*stream, c, b).ok());
  EXPECT_EQ(failure(),
            "parameter 0 of kernel twice: 256 bytes that are not allocated on the emulated GPU");
}

TEST_F(EmulatedMachines, MemoryIsPoisonedAlignedAndLimited) {
  for (int64_t bytes : {0, 1, 100, 1000}) {
    std::byte* memory = machine->Allocate(bytes, *stream).value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 256, 0u);
    for (int64_t i = 0; i < std::max<int64_t>(bytes, 1); ++i) {
      ASSERT_EQ(static_cast<int>(memory[i]), 0xa5);
    }
    machine->Free(memory, bytes, *stream);
  }
  EXPECT_TRUE(stream->Synchronise().ok());
  int64_t free_bytes = machine->Memory().value().free_bytes;
  EXPECT_EQ(machine->Memory().value().total_bytes, 1 << 20);
  EXPECT_EQ(free_bytes, (1 << 20) - 2 * kBytes);
  auto failure = machine->Allocate(free_bytes + 1, *stream);
  EXPECT_EQ(failure.status().ToString(),
            Cat("RESOURCE_EXHAUSTED: out of memory of the emulated GPU: ", free_bytes + 1,
                " bytes asked for, 512 of 1048576 bytes in use"));
  // What waits to be freed can be had.
  std::byte* all = machine->Allocate(free_bytes, *stream).value();
  machine->Free(all, free_bytes, *stream);
  all = machine->Allocate(free_bytes, *stream).value();
  machine->Free(all, free_bytes, *stream);
  std::byte* pinned = machine->AllocatePinned(1 << 21).value();
  machine->FreePinned(pinned, 1 << 21);
}

TEST_F(EmulatedMachines, Graphs) {
  auto graph = machine->MakeGraph().value();
  GpuSpan args[] = {{a, kBytes}, {b, kBytes}};
  EXPECT_EQ(graph->AddLaunch(*kernel, kGrid, args).value(), 0);
  EXPECT_EQ(graph->AddCopy(a, b, kBytes).value(), 1);
  EXPECT_EQ(stream->Launch(*graph).code(), Code::kFailedPrecondition);
  EXPECT_TRUE(graph->Finish().ok());
  EXPECT_EQ(graph->AddCopy(a, b, kBytes).status().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(stream->CopyFromHost(a, in.data(), kBytes).ok());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(stream->Launch(*graph).ok());
  // These launches have not been done yet, and keep what they were asked for with.
  std::byte* c = machine->Allocate(kBytes, *stream).value();
  GpuSpan others[] = {{a, kBytes}, {c, kBytes}};
  EXPECT_TRUE(graph->SetLaunch(0, others).ok());
  EXPECT_TRUE(graph->SetCopy(1, b, c).ok());
  EXPECT_TRUE(stream->CopyToHost(out.data(), a, kBytes).ok());
  EXPECT_EQ(stream->Synchronise().ToString(), "OK");
  EXPECT_EQ(out, Expected(3));
  EXPECT_TRUE(stream->Launch(*graph).ok());
  EXPECT_TRUE(stream->CopyToHost(out.data(), b, kBytes).ok());
  EXPECT_EQ(stream->Synchronise().ToString(), "OK");
  EXPECT_EQ(out, Expected(4));
  EXPECT_EQ(graph->SetLaunch(1, others).code(), Code::kInvalidArgument);
  EXPECT_EQ(graph->SetCopy(2, b, c).code(), Code::kInvalidArgument);
  EXPECT_EQ(graph->SetLaunch(0, {others, 1}).code(), Code::kInvalidArgument);
  machine->Free(c, kBytes, *stream);
}

// A loop with a choice in it, which go by bytes of an array that is shifted in each turn.
TEST_F(EmulatedMachines, GraphsWithLoops) {
  EXPECT_TRUE(machine->loops_on_device());
  auto graph = machine->MakeGraph().value();
  GpuSpan args[] = {{a, kBytes}, {b, kBytes}};
  std::byte* flags = machine->Allocate(8, *stream).value();
  EXPECT_EQ(graph->End().code(), Code::kFailedPrecondition);
  int loop = graph->BeginWhile(flags + 1).value();
  int choice = graph->BeginBranches(flags + 2, true, 2).value();
  EXPECT_EQ(graph->End().code(), Code::kFailedPrecondition);
  int launch = graph->AddLaunch(*kernel, kGrid, args).value();
  EXPECT_TRUE(graph->AddCopy(a, b, kBytes).ok());
  EXPECT_TRUE(graph->NextBranch().ok());
  EXPECT_EQ(graph->NextBranch().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(graph->End().ok());
  EXPECT_EQ(graph->Finish().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(graph->AddCopy(flags, flags + 1, 7).ok());
  EXPECT_TRUE(graph->End().ok());
  EXPECT_TRUE(graph->Finish().ok());
  EXPECT_EQ(graph->SetCondition(launch, flags).code(), Code::kInvalidArgument);
  EXPECT_TRUE(graph->SetCondition(loop, flags).ok());
  EXPECT_TRUE(graph->SetCondition(choice, flags + 1).ok());
  // Four turns, in the last of which there is nothing to do.
  std::vector<uint8_t> ones = {1, 1, 1, 1, 0, 0, 0, 0};
  EXPECT_TRUE(stream->CopyFromHost(flags, ones.data(), 8).ok());
  EXPECT_TRUE(stream->CopyFromHost(a, in.data(), kBytes).ok());
  EXPECT_TRUE(stream->Launch(*graph).ok());
  EXPECT_TRUE(stream->CopyToHost(out.data(), a, kBytes).ok());
  EXPECT_EQ(stream->Synchronise().ToString(), "OK");
  EXPECT_EQ(out, Expected(3));
  // What goes wrong in a body ends the loop, and is the launch's.
  GpuSpan wrong[] = {{a, kBytes}, {b + 4, kBytes}};
  EXPECT_TRUE(graph->SetLaunch(launch, wrong).ok());
  EXPECT_TRUE(stream->CopyFromHost(flags, ones.data(), 8).ok());
  EXPECT_TRUE(stream->Launch(*graph).ok());
  EXPECT_EQ(stream->Synchronise().code(), Code::kInternal);
  EXPECT_TRUE(graph->SetCondition(loop, flags + 8).ok());
  EXPECT_TRUE(stream->Launch(*graph).ok());
  Status status = stream->Synchronise();
  EXPECT_NE(status.message().find("the predicate of a loop"), std::string_view::npos)
      << status.ToString();
  machine->Free(flags, 8, *stream);
}

TEST_F(EmulatedMachines, WhatTheGpuDoesNotDoIsRefused) {
  EXPECT_EQ(machine->WrapStream(nullptr).status().code(), Code::kUnimplemented);
  GpuSpan args[] = {{a, kBytes}, {b, kBytes}};
  EXPECT_EQ(stream->Launch(*kernel, {1, 31}, args).code(), Code::kInvalidArgument);
  EXPECT_EQ(stream->Launch(*kernel, {1, 32, 200 << 10}, args).code(), Code::kInvalidArgument);
  EXPECT_EQ(stream->Launch(*kernel, kGrid, {args, 1}).code(), Code::kInvalidArgument);
  EXPECT_EQ(module->Find("thrice").status().code(), Code::kNotFound);
  EXPECT_FALSE(machine->Load("no object").ok());
  EXPECT_EQ(EmulatedMachine::Create(target::NvidiaGpu(80).value(), pool, allocator).status().code(),
            Code::kInvalidArgument);
}

// Modules may go before the work that needs them, as far as the stream is concerned.
TEST_F(EmulatedMachines, LaunchesKeepTheirCode) {
  EXPECT_TRUE(stream->CopyFromHost(a, in.data(), kBytes).ok());
  EXPECT_TRUE(Launch(*stream, a, b).ok());
  module.reset();
  EXPECT_TRUE(stream->CopyToHost(out.data(), b, kBytes).ok());
  EXPECT_EQ(stream->Synchronise().ToString(), "OK");
  EXPECT_EQ(out, Expected(1));
}

TEST_F(EmulatedMachines, ThreadsOfTheHostMayAllUseIt) {
  std::vector<std::thread> threads;
  std::vector<std::string> failures(4);
  for (size_t t = 0; t < failures.size(); ++t) {
    threads.emplace_back([&, t] {
      auto mine = machine->MakeStream().value();
      std::vector<int32_t> result(kCount);
      for (int i = 0; i < 50; ++i) {
        std::byte* from = machine->Allocate(kBytes, *mine).value();
        std::byte* to = machine->Allocate(kBytes, *mine).value();
        Status status = mine->CopyFromHost(from, in.data(), kBytes);
        if (status.ok()) status = Launch(*mine, from, to);
        if (status.ok()) status = mine->CopyToHost(result.data(), to, kBytes);
        if (status.ok()) status = mine->Synchronise();
        machine->Free(from, kBytes, *mine);
        machine->Free(to, kBytes, *mine);
        if (!status.ok()) failures[t] = status.ToString();
        if (result != Expected(1)) failures[t] += " wrong";
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& f : failures) EXPECT_EQ(f, "");
}

}  // namespace
}  // namespace kiln

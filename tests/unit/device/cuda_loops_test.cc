// Loops and choices in CUDA graphs, on the stand-in for the driver: versions with all conditional
// nodes, with some and with none, and programs that use them.

#include <algorithm>
#include <array>
#include <numeric>

#include "base/strings.h"
#include "device/cuda/conditions.h"
#include "device/gpu/device.h"
#include "support/cuda_standin.h"
#include "support/gpu.h"
#include "support/hlo.h"
#include "support/ptxas.h"

namespace kiln::device::cuda {
namespace {

#define ASSERT_OK(status) ASSERT_EQ((status).ToString(), "OK")

TEST(CudaConditions, TheAssemblerTakesTheKernel) {
  for (int sm : {75, 80, 90, 120}) EXPECT_EQ(testing::Assemble(sm, kConditionPtx), "");
}

// Arrays of bytes, of which loops and choices are made: the stand-in's kernels compute nothing, but
// its copies copy.
class CudaLoops : public CudaTest, public ::testing::WithParamInterface<std::string> {
 protected:
  static constexpr int64_t kBytes = 512;

  void SetUp() override {
    CudaTest::SetUp();
    Configure(GetParam());
    machine_ = Machine();
    ASSERT_NE(machine_, nullptr);
    stream_ = machine_->MakeStream().value();
    module_ = machine_->Load(kPtx).value();
    fill_ = module_->Find("fill").value();
    for (std::byte*& array : arrays_) array = machine_->Allocate(kBytes, *stream_).value();
  }
  void TearDown() override {
    if (stream_) {
      for (std::byte* array : arrays_) machine_->Free(array, kBytes, *stream_);
    }
    module_.reset();
    stream_.reset();
    machine_.reset();
    CudaTest::TearDown();
  }

  // `count` ones, then zeros.
  void Ones(std::byte* array, int64_t count) {
    std::vector<uint8_t> values(kBytes, 0);
    std::fill_n(values.begin(), count, 1);
    Put(array, values);
  }
  template <typename T>
  void Put(std::byte* array, const std::vector<T>& values) {
    ASSERT_OK(stream_->CopyFromHost(array, values.data(),
                                    static_cast<int64_t>(values.size() * sizeof(T))));
  }
  uint8_t Get(const std::byte* array) {
    uint8_t value = 0;
    EXPECT_EQ(stream_->CopyToHost(&value, array, 1).ToString(), "OK");
    EXPECT_EQ(stream_->Synchronise().ToString(), "OK");
    return value;
  }
  // Kernels that a launch of the graph comes to.
  int64_t Launch(GpuGraph& graph) {
    int64_t before = Count("launches");
    EXPECT_EQ(stream_->Launch(graph).ToString(), "OK");
    EXPECT_EQ(stream_->Synchronise().ToString(), "OK");
    return Count("launches") - before;
  }
  Status AddKernel(GpuGraph& graph, std::byte* array) {
    const GpuSpan span{array, kBytes};
    return graph.AddLaunch(*fill_, {}, {&span, 1}).status();
  }
  // The next of the bytes that a loop goes by.
  static Status AddShift(GpuGraph& graph, std::byte* array) {
    return graph.AddCopy(array, array + 1, kBytes - 1).status();
  }

  std::unique_ptr<CudaMachine> machine_;
  std::unique_ptr<GpuStream> stream_;
  std::unique_ptr<GpuModule> module_;
  GpuKernel* fill_ = nullptr;
  std::array<std::byte*, 4> arrays_ = {};
};

INSTANTIATE_TEST_SUITE_P(Drivers, CudaLoops,
                         ::testing::Values("driver_version=12030", "driver_version=12080",
                                           "driver_version=13000,deferred=1",
                                           "driver_version=12080,body_updates=0"),
                         [](const auto& info) { return Cat("n", info.index); });

TEST_P(CudaLoops, While) {
  ASSERT_TRUE(machine_->loops_on_device());
  auto graph = machine_->MakeGraph().value();
  ASSERT_OK(AddKernel(*graph, arrays_[1]));
  ASSERT_OK(graph->BeginWhile(arrays_[0]).status());
  ASSERT_OK(AddKernel(*graph, arrays_[1]));
  ASSERT_OK(AddShift(*graph, arrays_[0]));
  ASSERT_OK(graph->End());
  ASSERT_OK(AddKernel(*graph, arrays_[1]));
  ASSERT_OK(graph->Finish());
  for (int64_t turns : {0, 1, 2, 300}) {
    Ones(arrays_[0], turns);
    EXPECT_EQ(Launch(*graph), turns + 2);
    EXPECT_EQ(Launch(*graph), 2);
  }
}

// More than 100,000 turns; what there is of the driver does not grow.
TEST_P(CudaLoops, Nested) {
  auto graph = machine_->MakeGraph().value();
  ASSERT_OK(graph->BeginWhile(arrays_[0]).status());
  ASSERT_OK(graph->AddCopy(arrays_[2], arrays_[1], kBytes).status());
  ASSERT_OK(graph->BeginWhile(arrays_[2]).status());
  ASSERT_OK(AddKernel(*graph, arrays_[1]));
  ASSERT_OK(AddShift(*graph, arrays_[2]));
  ASSERT_OK(graph->End());
  ASSERT_OK(AddShift(*graph, arrays_[0]));
  ASSERT_OK(graph->End());
  ASSERT_OK(graph->Finish());
  Ones(arrays_[0], 0);
  Ones(arrays_[1], 330);
  EXPECT_EQ(Launch(*graph), 0);
  const int64_t live = Count("live");
  Ones(arrays_[0], 310);
  EXPECT_EQ(Launch(*graph), 310 * 330);
  EXPECT_EQ(Count("live"), live);
}

TEST_P(CudaLoops, ChoicesByAPredicate) {
  auto graph = machine_->MakeGraph().value();
  ASSERT_OK(graph->BeginBranches(arrays_[0], true, 2).status());
  ASSERT_OK(graph->AddCopy(arrays_[2], arrays_[1] + 1, 1).status());
  ASSERT_OK(graph->NextBranch());
  ASSERT_OK(graph->AddCopy(arrays_[2], arrays_[1], 1).status());
  ASSERT_OK(graph->End());
  ASSERT_OK(graph->AddCopy(arrays_[3], arrays_[2], 1).status());
  ASSERT_OK(graph->Finish());
  Put<uint8_t>(arrays_[1], {10, 11});
  for (uint8_t value : {0, 1, 0, 255}) {
    Put<uint8_t>(arrays_[0], {value});
    Launch(*graph);
    EXPECT_EQ(Get(arrays_[3]), value != 0 ? 11 : 10);
  }
}

// Of many branches the third does nothing, nor does all that is in the fifth; the first makes
// another index, which nobody looks at.
TEST_P(CudaLoops, ChoicesOutOfMany) {
  constexpr int kBranches = 11;
  auto graph = machine_->MakeGraph().value();
  ASSERT_OK(graph->BeginBranches(arrays_[0], false, kBranches).status());
  for (int branch = 0; branch < kBranches; ++branch) {
    if (branch > 0) ASSERT_OK(graph->NextBranch());
    if (branch == 0) ASSERT_OK(graph->AddCopy(arrays_[0], arrays_[3], 4).status());
    if (branch == 5) {
      ASSERT_OK(graph->BeginBranches(arrays_[0], true, 2).status());
      ASSERT_OK(graph->AddCopy(arrays_[0], arrays_[3], 0).status());
      ASSERT_OK(graph->NextBranch());
      ASSERT_OK(graph->End());
    } else if (branch != 3) {
      ASSERT_OK(graph->AddCopy(arrays_[2], arrays_[1] + branch, 1).status());
    }
  }
  ASSERT_OK(graph->End());
  ASSERT_OK(graph->Finish());
  std::vector<uint8_t> values(kBranches);
  std::iota(values.begin(), values.end(), 20);
  Put(arrays_[1], values);
  Put<int32_t>(arrays_[3], {7});
  for (int32_t index : {0, 1, 2, 3, 4, 5, 10, 11, 1 << 30, -1, -(1 << 30)}) {
    Put<int32_t>(arrays_[0], {index});
    Put<uint8_t>(arrays_[2], {99});
    Launch(*graph);
    const int branch = index < 0 || index > 10 ? 10 : index;
    EXPECT_EQ(Get(arrays_[2]), branch == 3 || branch == 5 ? 99 : 20 + branch) << index;
  }
}

// A loop in a branch in a loop, whose nodes then have their arrays elsewhere.
TEST_P(CudaLoops, OtherAddresses) {
  const std::string parameters = GetParam();
  auto graph = machine_->MakeGraph().value();
  const auto outer = graph->BeginWhile(arrays_[0]);
  ASSERT_OK(outer.status());
  const auto choice = graph->BeginBranches(arrays_[0] + 1, true, 2);
  ASSERT_OK(choice.status());
  const auto inner = graph->BeginWhile(arrays_[1]);
  ASSERT_OK(inner.status());
  const auto first = graph->AddCopy(arrays_[1], arrays_[1] + 1, kBytes - 1);
  ASSERT_OK(first.status());
  const GpuSpan span{arrays_[1], kBytes};
  const auto launch = graph->AddLaunch(*fill_, {}, {&span, 1});
  ASSERT_OK(launch.status());
  ASSERT_OK(graph->End());
  ASSERT_OK(graph->NextBranch());
  ASSERT_OK(AddKernel(*graph, arrays_[3]));
  ASSERT_OK(graph->End());
  const auto second = graph->AddCopy(arrays_[0], arrays_[0] + 1, kBytes - 1);
  ASSERT_OK(second.status());
  ASSERT_OK(graph->End());
  ASSERT_OK(graph->Finish());
  auto expect = [&](std::byte* a, std::byte* b) {
    Ones(a, 3);
    Ones(b, 20);
    // In the first turn twenty, in the second none, in the third the other branch.
    EXPECT_EQ(Launch(*graph), 21);
    EXPECT_EQ(Get(a), 0);
    EXPECT_EQ(Get(b), 0);
  };
  expect(arrays_[0], arrays_[1]);

  auto move = [&](std::byte* a, std::byte* b) {
    ASSERT_OK(graph->SetCondition(*outer, a));
    ASSERT_OK(graph->SetCondition(*choice, a + 1));
    ASSERT_OK(graph->SetCondition(*inner, b));
    ASSERT_OK(graph->SetCopy(*first, b, b + 1));
    const GpuSpan other{b, kBytes};
    ASSERT_OK(graph->SetLaunch(*launch, {&other, 1}));
    ASSERT_OK(graph->SetCopy(*second, a, a + 1));
  };
  EXPECT_EQ(Count("cuGraphInstantiateWithFlags"), 1);
  move(arrays_[3], arrays_[2]);
  expect(arrays_[3], arrays_[2]);
  // Where the driver refuses that, it is asked once, and from then on graphs are made anew, one
  // before a launch.
  const bool refuses = parameters.find("body_updates=0") != std::string::npos;
  EXPECT_EQ(Count("cuGraphInstantiateWithFlags"), refuses ? 3 : 1);
  move(arrays_[0], arrays_[2]);
  expect(arrays_[0], arrays_[2]);
  EXPECT_EQ(Count("cuGraphInstantiateWithFlags"), refuses ? 4 : 1);
  EXPECT_EQ(Count("graphs"), 1);
  EXPECT_EQ(Count("execs"), 1);
  EXPECT_FALSE(graph->SetCondition(*first, arrays_[0]).ok());
  EXPECT_FALSE(graph->SetCopy(*inner, arrays_[0], arrays_[0]).ok());
}

TEST_P(CudaLoops, WhatIsNoBodyIsRefused) {
  auto graph = machine_->MakeGraph().value();
  EXPECT_EQ(graph->End().code(), Code::kFailedPrecondition);
  EXPECT_EQ(graph->NextBranch().code(), Code::kFailedPrecondition);
  EXPECT_EQ(graph->BeginBranches(arrays_[0], true, 3).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(graph->BeginBranches(arrays_[0], false, 0).status().code(), Code::kInvalidArgument);
  ASSERT_OK(graph->BeginWhile(arrays_[0]).status());
  EXPECT_EQ(graph->NextBranch().code(), Code::kFailedPrecondition);
  EXPECT_EQ(graph->Finish().code(), Code::kFailedPrecondition);
  ASSERT_OK(graph->BeginBranches(arrays_[0], true, 2).status());
  EXPECT_EQ(graph->End().code(), Code::kFailedPrecondition);
  ASSERT_OK(graph->NextBranch());
  EXPECT_EQ(graph->NextBranch().code(), Code::kFailedPrecondition);
  ASSERT_OK(graph->End());
  ASSERT_OK(graph->End());
}

// A body's failure is that of the launch, and ends the loop.
TEST_P(CudaLoops, BodiesThatFail) {
  auto graph = machine_->MakeGraph().value();
  ASSERT_OK(graph->BeginWhile(arrays_[0]).status());
  ASSERT_OK(AddKernel(*graph, arrays_[1]));
  ASSERT_OK(graph->End());
  ASSERT_OK(graph->Finish());
  Ones(arrays_[0], 1);
  ASSERT_OK(stream_->Synchronise());
  standin_.fail_work(static_cast<int>(Error::kIllegalAddress));
  ASSERT_OK(stream_->Launch(*graph));
  EXPECT_EQ(stream_->Synchronise().code(), Code::kInternal);
  graph.reset();
}

// --- Programs

// Whose state goes round by copies alone, as often as there are ones: of constants, as preds from
// outside go through a kernel first.
std::string ProgramOf(int ones) {
  std::string text = R"(HloModule m
body { t = (pred[], pred[], pred[], s32[4]) parameter(0)
  b = pred[] get-tuple-element(t), index=1
  c = pred[] get-tuple-element(t), index=2
  f = pred[] constant(false)
  x = s32[4] get-tuple-element(t), index=3
  y = s32[4] add(x, x)
  ROOT r = (pred[], pred[], pred[], s32[4]) tuple(b, c, f, y) }
condition { t = (pred[], pred[], pred[], s32[4]) parameter(0)
  ROOT p = pred[] get-tuple-element(t), index=0 }
ENTRY e { x = s32[4] parameter(0)
)";
  for (int i = 0; i < 3; ++i) {
    text += Cat("  p", i, " = pred[] constant(", i < ones ? "true" : "false", ")\n");
  }
  return text + R"(  init = (pred[], pred[], pred[], s32[4]) tuple(p0, p1, p2, x)
  ROOT w = (pred[], pred[], pred[], s32[4]) while(init), condition=condition, body=body })";
}

class CudaPrograms : public CudaTest {
 protected:
  // Runs it twice, with so many ones; what it notes. It is compiled, or is `compiled`, unless that
  // is null.
  Result<std::vector<std::string>> Run(
      int ones, const CudaOptions& options,
      const std::shared_ptr<const program::Artefact>& compiled = nullptr) {
    std::vector<std::string> notes;
    CudaDevices devices = Discover(options);
    if (devices.machines.empty()) return NotFound(Join(devices.notes, "\n"));
    std::shared_ptr<GpuMachine> machine = std::move(devices.machines[0]);
    GpuDevice device("GPU:0", machine, 0);
    device.set_on_note([&](std::string_view note) { notes.emplace_back(note); });
    KILN_ASSIGN_OR_RETURN(
        testing::Loaded loaded,
        compiled ? testing::LoadOnGpu(compiled, device)
                 : testing::LoadOnGpu(*ir::ParseOrDie(ProgramOf(ones)), false, device));
    last_ = loaded.artefact;
    std::vector<Literal> arguments;
    arguments.emplace_back(Shape(ElementType::kS32, {4}));
    for (int run = 0; run < 2; ++run) {
      const int64_t before = Count("launches");
      KILN_RETURN_IF_ERROR(testing::RunOnGpu(loaded, arguments).status());
      const int64_t launches = Count("launches") - before;
      // The kernels of the body; the one turn's, at least, that the state begins with.
      if (launches != ones) return DataLoss(ones, " turns launch ", launches, " kernels");
    }
    return notes;
  }

  std::shared_ptr<const program::Artefact> last_;  // that was loaded
};

TEST_F(CudaPrograms, LoopOnTheDevice) {
  for (const char* version : {"driver_version=12030", "driver_version=12080"}) {
    for (int ones : {0, 1, 3}) {
      standin_.reset();
      Configure(version);
      auto notes = Run(ones, Options());
      ASSERT_OK(notes.status());
      EXPECT_TRUE(notes->empty()) << notes->front();
      EXPECT_EQ(Count("cuGraphInstantiateWithFlags"), 1);
      EXPECT_EQ(Count("cuGraphLaunch"), 2);
      EXPECT_EQ(Count("cuLaunchKernel"), 0);
    }
  }
}

TEST_F(CudaPrograms, FromTheHostWhereTheDriverHasNoLoops) {
  CudaOptions forced = Options();
  forced.loops_on_device = false;
  for (const char* version : {"driver_version=12020", "driver_version=12080"}) {
    standin_.reset();
    Configure(version);
    auto notes = Run(3, std::string(version) == "driver_version=12080" ? forced : Options());
    ASSERT_OK(notes.status());
    EXPECT_TRUE(notes->empty());
    EXPECT_EQ(Count("cuGraphConditionalHandleCreate"), 0);
    EXPECT_GT(Count("cuLaunchKernel"), 0);
  }
}

TEST_F(CudaPrograms, FromTheHostWhereTheDriverRefuses) {
  for (const char* symbol : {"cuGraphConditionalHandleCreate", "cuGraphAddNode_v2",
                             "cuGraphInstantiateWithFlags", "cuGraphLaunch"}) {
    standin_.reset();
    Configure("driver_version=12080");
    Fail(symbol, 1, 1000, Error::kNotSupported);
    auto notes = Run(3, Options());
    FailNothing();
    // Graphs without loops are not to be had either, then.
    if (std::string(symbol) == "cuGraphLaunch" && !notes.ok()) continue;
    ASSERT_OK(notes.status());
    ASSERT_EQ(notes->size(), 1u) << symbol;
    EXPECT_NE(notes->front().find("CUDA_ERROR_NOT_SUPPORTED"), std::string::npos);
    EXPECT_NE(notes->front().find("driven from the host"), std::string::npos);
  }
}

TEST_F(CudaPrograms, EachCallFailsOnce) {
  for (const char* settings : {"driver_version=12030", "driver_version=12080,deferred=1"}) {
    standin_.reset();
    Configure(settings);
    ASSERT_OK(Run(2, Options()).status());
    const std::shared_ptr<const program::Artefact> compiled = last_;
    int64_t failed = 0;
    for (int64_t n = 1;; ++n) {
      standin_.reset();
      Configure(settings);
      Fail(nullptr, n, 1, Error::kInvalidValue);
      auto notes = Run(2, Options(), compiled);
      const int64_t calls = Count("calls");
      FailNothing();
      if (!notes.ok()) {
        ++failed;
        EXPECT_NE(notes.status().code(), Code::kDataLoss) << n << notes.status().ToString();
      }
      EXPECT_EQ(Count("live"), 0) << "call " << n;
      EXPECT_EQ(Count("leaked"), 0) << "call " << n;
      EXPECT_EQ(Count("misuse"), 0) << "call " << n;
      if (HasFailure() || calls < n) break;
    }
    EXPECT_GT(failed, 10);
  }
}

}  // namespace
}  // namespace kiln::device::cuda

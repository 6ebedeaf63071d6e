// Gemms by cuBLASLt, on the stand-ins for it and the driver: which go that way, what they compute,
// and what happens where something fails.

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/strings.h"
#include "compiler/gpu/library_gemm.h"
#include "device/gpu/autotune_results.h"
#include "device/gpu/device.h"
#include "interp/interpreter.h"
#include "kernel/schedule/gpu/gemm.h"
#include "support/cublaslt_standin.h"
#include "support/gpu.h"
#include "support/hlo.h"
#include "support/labels.h"
#include "support/literal.h"

namespace kiln::device::cuda {
namespace {

#define ASSERT_OK(status) ASSERT_EQ((status).ToString(), "OK")

constexpr char kPlain[] =
    "HloModule m\nENTRY e { x = f32[64,96] parameter(0) y = f32[96,160] parameter(1) "
    "ROOT d = f32[64,160] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }";
constexpr char kSmall[] =
    "HloModule m\nENTRY e { x = f32[8,16] parameter(0) y = f32[16,8] parameter(1) "
    "ROOT d = f32[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }";
// Between kernels of ours; the second gemm is one with what follows.
constexpr char kProgram[] = R"(HloModule m
ENTRY e {
  a = f32[64,96] parameter(0)
  b = f32[96,160] parameter(1)
  n = f32[64,96] exponential(a)
  s = f32[64,96] sort(n), dimensions={1}, to_apply=less
  d = f32[64,160] dot(s, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[64,160] sort(d), dimensions={1}, to_apply=less
  f = f32[64,64] dot(t, t), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT r = f32[64,64] negate(f)
}
less {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT l = pred[] compare(p, q), direction=LT
})";
constexpr char kLoop[] = R"(HloModule m
ENTRY e {
  x = f32[64,64] parameter(0)
  ROOT w = f32[64,64] while(x), condition=c, body=b
}
c {
  v = f32[64,64] parameter(0)
  s = f32[1,1] slice(v), slice={[0:1], [0:1]}
  r = f32[] reshape(s)
  k = f32[] constant(2)
  ROOT p = pred[] compare(r, k), direction=LT
}
b {
  v = f32[64,64] parameter(0)
  ROOT d = f32[64,64] dot(v, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})";

class CublasLt : public CublasLtTest {
 protected:
  void SetUp() override {
    CublasLtTest::SetUp();
    folder_ = Cat(::testing::TempDir(), "kiln_cublaslt_", getpid());
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override {
    CublasLtTest::TearDown();
    std::filesystem::remove_all(folder_);
  }

  struct Made {
    std::vector<std::string> notes;
    std::vector<Literal> results;  // of all runs
  };

  // The module on a machine of its own, run so many times.
  Result<Made> Run(const std::string& text, GpuLibraryUse use, const CudaOptions& options,
                   int runs = 1, int64_t limit = 0) {
    CudaDevices found = Discover(options);
    if (found.machines.empty()) return Unavailable(Join(found.notes, ", "));
    std::shared_ptr<GpuMachine> machine = std::move(found.machines[0]);
    Made made;
    GpuDevice device("GPU:0", machine, limit);
    device.set_on_note([&](std::string_view note) { made.notes.emplace_back(note); });
    device.set_autotune_results(std::make_shared<AutotuneResults>(use, folder_));
    const Compiled& compiled = Compile(text, device.target());
    KILN_ASSIGN_OR_RETURN(testing::Loaded loaded, testing::LoadOnGpu(compiled.artefact, device));
    for (int run = 0; run < runs; ++run) {
      KILN_ASSIGN_OR_RETURN(Literal result, testing::RunOnGpu(loaded, compiled.arguments));
      made.results.push_back(std::move(result));
    }
    return made;
  }
  Result<Made> Run(const std::string& text, GpuLibraryUse use = GpuLibraryUse::kAuto) {
    return Run(text, use, BlasOptions());
  }
  // What a machine's library says of one gemm.
  static bool Has(const Made& made, std::string_view part) {
    return std::any_of(made.notes.begin(), made.notes.end(), [&](const std::string& note) {
      return note.find(part) != std::string::npos;
    });
  }
  std::string Record() const {
    std::ifstream file(Cat(folder_, "/", AutotuneResults::kFileName));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void PutRecord(const std::string& text) {
    std::filesystem::create_directories(folder_);
    std::ofstream(Cat(folder_, "/", AutotuneResults::kFileName)) << text;
  }

  std::string folder_;

 private:
  struct Compiled {
    std::shared_ptr<const program::Artefact> artefact;
    std::vector<Literal> arguments;
  };
  const Compiled& Compile(const std::string& text, const target::Target& target) {
    Compiled& compiled = compiled_[text];
    if (!compiled.artefact) {
      auto module = ir::ParseOrDie(text);
      compiled.arguments = testing::RandomArguments(*module, 5);
      compiled.artefact = std::make_shared<const program::Artefact>(
          compiler::Compile(std::move(module), target, {}).value());
    }
    return compiled;
  }

  std::map<std::string, Compiled> compiled_;
};

TEST_F(CublasLt, TheFasterOneIsTaken) {
  Configure("launch_time=10");
  ConfigureBlas("time=4");
  auto faster = Run(kPlain);
  ASSERT_OK(faster.status());
  EXPECT_TRUE(Has(*faster, "goes by cuBLASLt 13.1.0: 5000 us, our kernel 11000 us"))
      << Join(faster->notes, "\n");
  // A millisecond of each is the event's.
  EXPECT_NE(Record().find(
                "| cuBLASLt 13.1.0 | 64 x 160 x 96, f32 in f32 to f32, x along k by 96, "
                "y across k by 160, out by 160 | ours 11000.0 us | library 5000.0 us | library\n"),
            std::string::npos)
      << Record();

  std::filesystem::remove_all(folder_);
  ConfigureBlas("time=30");
  const int64_t gemms = CountBlas("gemms");
  const int64_t launches = Count("launches");
  auto slower = Run(kPlain);
  ASSERT_OK(slower.status());
  EXPECT_FALSE(Has(*slower, "goes by"));
  EXPECT_TRUE(Record().ends_with(" us | ours\n")) << Record();
  // It is found out soon, and what runs is ours.
  EXPECT_LE(CountBlas("gemms"), gemms + 8);
  EXPECT_EQ(Count("launches") - launches, CountBlas("gemms") - gemms + 1);
}

TEST_F(CublasLt, WhatIsNearlyAsFastIsNotWorthIt) {
  Configure("launch_time=100");
  ConfigureBlas("time=97");
  ASSERT_OK(Run(kPlain).status());
  EXPECT_TRUE(Record().ends_with(" us | ours\n")) << Record();
  std::filesystem::remove_all(folder_);
  ConfigureBlas("time=90");
  ASSERT_OK(Run(kPlain).status());
  EXPECT_TRUE(Record().ends_with(" us | library\n")) << Record();
}

TEST_F(CublasLt, TheRecordIsFollowed) {
  Configure("launch_time=10");
  ConfigureBlas("time=4");
  ASSERT_OK(Run(kPlain).status());
  const std::string record = Record();
  // Now it would be measured otherwise; but nothing is measured.
  ConfigureBlas("time=30");
  int64_t gemms = CountBlas("gemms"), launches = Count("launches");
  auto again = Run(kPlain);
  ASSERT_OK(again.status());
  EXPECT_EQ(CountBlas("gemms") - gemms, 1);
  EXPECT_EQ(Count("launches") - launches, 0);
  EXPECT_TRUE(Has(*again, "goes by"));
  EXPECT_EQ(Record(), record);
  // The other way round.
  std::string ours = record;
  ours.replace(ours.rfind("library\n"), 8, "ours\n");
  PutRecord(ours);
  gemms = CountBlas("gemms");
  auto others = Run(kPlain);
  ASSERT_OK(others.status());
  EXPECT_EQ(CountBlas("gemms") - gemms, 0);
  EXPECT_FALSE(Has(*others, "goes by"));
  // That of another version, and a broken one, say nothing.
  ConfigureBlas("version=130200");
  ASSERT_OK(Run(kPlain).status());
  EXPECT_GT(CountBlas("gemms"), gemms);
  EXPECT_EQ(Record().find(ours.substr(ours.find('\n') + 1, 20)), ours.find('\n') + 1);
  PutRecord("half a line");
  auto broken = Run(kPlain);
  ASSERT_OK(broken.status());
  EXPECT_TRUE(Has(*broken, "what cannot be read is passed over, in lines 1"));
}

TEST_F(CublasLt, OneMeasurementForEqualGemms) {
  Configure("launch_time=10");
  ConfigureBlas("time=30");
  auto module = ir::ParseOrDie(kPlain);
  std::shared_ptr<GpuMachine> machine = Machine(BlasOptions());
  // Both devices of a GPU have the same choices.
  auto choices = std::make_shared<AutotuneResults>(GpuLibraryUse::kAuto, "");
  int64_t first = 0;
  for (const char* name : {"GPU:0", "XLA_GPU:0"}) {
    GpuDevice device(name, machine, 0);
    device.set_autotune_results(choices);
    for (int i = 0; i < 2; ++i) {
      ASSERT_OK(testing::LoadOnGpu(*module, true, device).status());
      if (first == 0) first = CountBlas("gemms");
      EXPECT_EQ(CountBlas("gemms"), first);
    }
  }
  EXPECT_GT(first, 0);
  // Without a device's choices there is no library at all.
  const int64_t versions = CountBlas("cublasLtGetVersion");
  GpuDevice device("GPU:0", machine, 0);
  ASSERT_OK(testing::LoadOnGpu(*module, true, device).status());
  EXPECT_EQ(CountBlas("cublasLtGetVersion"), versions);
}

TEST_F(CublasLt, ForcedEitherWay) {
  Configure("launch_time=10");
  ConfigureBlas("time=30");
  auto always = Run(kPlain, GpuLibraryUse::kAlways);
  ASSERT_OK(always.status());
  EXPECT_EQ(CountBlas("gemms"), 1);
  EXPECT_EQ(Count("launches"), 0);
  EXPECT_TRUE(Has(*always, "goes by cuBLASLt 13.1.0: as every one that it takes"));
  EXPECT_EQ(Record(), "");

  ConfigureBlas("time=1");
  const int64_t versions = CountBlas("cublasLtGetVersion");
  auto never = Run(kPlain, GpuLibraryUse::kNever);
  ASSERT_OK(never.status());
  EXPECT_EQ(CountBlas("gemms"), 1);
  EXPECT_EQ(CountBlas("cublasLtGetVersion"), versions);
  EXPECT_TRUE(never->notes.empty());
  EXPECT_EQ(Record(), "");
}

TEST_F(CublasLt, WithoutALibrary) {
  CudaOptions missing = Options();
  missing.gemm_library = "/nowhere/libcublasLt.so.13";
  for (GpuLibraryUse use : {GpuLibraryUse::kAuto, GpuLibraryUse::kAlways}) {
    auto made = Run(kPlain, use, missing);
    ASSERT_OK(made.status());
    EXPECT_TRUE(Has(*made, "no cuBLASLt: /nowhere/libcublasLt.so.13: ")) << made->notes.size();
    EXPECT_EQ(made->notes.size(), 1u);
  }
  CudaOptions other = Options();
  other.gemm_library = standin_.path;
  auto wrong = Run(kPlain, GpuLibraryUse::kAlways, other);
  ASSERT_OK(wrong.status());
  EXPECT_TRUE(Has(*wrong, "is no cuBLASLt: it has no cublasLtGetVersion"));
  ConfigureBlas("version=110501");
  auto old = Run(kPlain, GpuLibraryUse::kAlways);
  ASSERT_OK(old.status());
  EXPECT_TRUE(Has(*old, "is too old: it is 11.5.1; at least 12.0.0 is needed"));
  EXPECT_EQ(CountBlas("cublasLtCreate"), 0);
}

TEST_F(CublasLt, WhatTheLibraryDoesNotTakeIsOurs) {
  for (const char* takes : {"takes=0", "takes=-1"}) {
    ConfigureBlas(takes);
    for (GpuLibraryUse use : {GpuLibraryUse::kAuto, GpuLibraryUse::kAlways}) {
      const int64_t launches = Count("launches");
      auto made = Run(kPlain, use);
      ASSERT_OK(made.status());
      EXPECT_TRUE(made->notes.empty()) << made->notes[0];
      EXPECT_EQ(Count("launches") - launches, 1);
    }
  }
  EXPECT_EQ(CountBlas("gemms"), 0);
}

TEST_F(CublasLt, BetweenGraphs) {
  for (const char* deferred : {"deferred=0", "deferred=1"}) {
    standin_.reset();
    Configure(deferred);
    const int64_t gemms = CountBlas("gemms");
    auto made = Run(kProgram, GpuLibraryUse::kAlways, BlasOptions(), 3);
    ASSERT_OK(made.status());
    // The second gemm is one with the negation, and ours.
    EXPECT_EQ(CountBlas("gemms") - gemms, 3);
    // Before it and after it, from the second run on.
    EXPECT_GE(Count("cuGraphLaunch"), 2);
  }
}

TEST_F(CublasLt, LoopsOnTheDeviceAreOurs) {
  Configure("driver_version=12080");
  auto module = ir::ParseOrDie(kLoop);
  std::shared_ptr<GpuMachine> machine = Machine(BlasOptions());
  ASSERT_TRUE(machine->loops_on_device());
  {
    GpuDevice device("GPU:0", machine, 0);
    device.set_autotune_results(std::make_shared<AutotuneResults>(GpuLibraryUse::kAlways, ""));
    ASSERT_OK(testing::LoadOnGpu(*module, true, device).status());
  }
  EXPECT_EQ(CountBlas("cublasLtGetVersion"), 0);
  // From the host they are not.
  CudaOptions from_host = BlasOptions();
  from_host.loops_on_device = false;
  machine = Machine(from_host);
  GpuDevice device("GPU:0", machine, 0);
  device.set_autotune_results(std::make_shared<AutotuneResults>(GpuLibraryUse::kAlways, ""));
  ASSERT_OK(testing::LoadOnGpu(*module, true, device).status());
  EXPECT_EQ(CountBlas("cublasLtMatmulAlgoGetHeuristic"), 1);
}

// The arrays that are measured with do not fit; then only the workspace does not.
TEST_F(CublasLt, WithoutTheMemory) {
  const int64_t arrays = 4 * (64 * 96 + 96 * 160 + 64 * 160);
  auto made = Run(kPlain, GpuLibraryUse::kAuto, BlasOptions(), 1, arrays + 1000);
  ASSERT_OK(made.status());
  EXPECT_TRUE(Has(*made, "is not measured: out of memory")) << Join(made->notes, "\n");
  EXPECT_EQ(Record(), "");
  ConfigureBlas("workspace=1000000");
  auto always = Run(kPlain, GpuLibraryUse::kAlways, BlasOptions(), 1, arrays + 1000);
  ASSERT_OK(always.status());
  EXPECT_TRUE(Has(*always, "goes by our kernel after all: out of memory"));
  EXPECT_EQ(CountBlas("gemms"), 0);
}

struct Shape2 {
  int contracting_x, contracting_y;
  bool batch;
};

std::string TextOf(const std::string& type, const std::string& out, const Shape2& s) {
  auto dims = [&](int contracting, int points) {
    const std::string batch = s.batch ? "3," : "";
    return contracting == 1 ? Cat("[", batch, points, ",96]") : Cat("[", batch, "96,", points, "]");
  };
  const int first = s.batch ? 1 : 0;
  return Cat("HloModule m\nENTRY e { x = ", type, dims(s.contracting_x, 40),
             " parameter(0) y = ", type, dims(s.contracting_y, 56), " parameter(1) ROOT d = ", out,
             s.batch ? "[3,40,56]" : "[40,56]", " dot(x, y), ",
             s.batch ? "lhs_batch_dims={0}, rhs_batch_dims={0}, " : "", "lhs_contracting_dims={",
             s.contracting_x + first, "}, rhs_contracting_dims={", s.contracting_y + first, "} }");
}

// With the arrays of a gemm elsewhere in each run.
TEST_F(CublasLt, TheEvaluatorsNumbers) {
  struct Types {
    const char *factor, *out;
    double bound;
  };
  int64_t gemms = 0, batches = 0;
  for (const Types& types :
       {Types{"f32", "f32", 1e-6}, Types{"f16", "f16", 0x1p-10}, Types{"f16", "f32", 1e-6},
        Types{"bf16", "bf16", 0x1p-7}, Types{"bf16", "f32", 1e-6}, Types{"f64", "f64", 1e-14},
        Types{"s8", "s32", 0}}) {
    for (int layout = 0; layout < 8; ++layout) {
      const Shape2 shape{layout & 1, layout >> 1 & 1, layout >= 4};
      const std::string text = TextOf(types.factor, types.out, shape);
      SCOPED_TRACE(text);
      auto module = ir::ParseOrDie(text);
      auto expected = interp::Evaluate(*module, testing::RandomArguments(*module, 5));
      ASSERT_OK(expected.status());
      auto made = Run(text, GpuLibraryUse::kAlways, BlasOptions(), 2);
      ASSERT_OK(made.status());
      // Factors are below 2, sums of 96 of their products below 400, and each step may round.
      const double absolute =
          std::string(types.factor) == "f64" ? 1e-12 : 0x1p-24 * 400 * (types.bound > 0 ? 4 : 0);
      for (const Literal& actual : made->results) {
        EXPECT_EQ(testing::Difference(*expected, actual, types.bound, absolute), "");
      }
      EXPECT_EQ(CountBlas("gemms"), gemms += 2);
      EXPECT_EQ(CountBlas("batches"), batches += shape.batch ? 2 : 0);
    }
  }
  EXPECT_EQ(CountBlas("rounded"), 0);
  EXPECT_EQ(Count("launches"), 0);
}

// A part of an array, and the transposed gemm.
TEST_F(CublasLt, PartsOfArrays) {
  const std::string text =
      "HloModule m\nENTRY e { a = f32[40,200] parameter(0) x = f32[40,96] slice(a), "
      "slice={[0:40], [33:129]} y = f32[96,56] parameter(1) d = f32[40,56] dot(x, y), "
      "lhs_contracting_dims={1}, rhs_contracting_dims={0} ROOT t = f32[56,40] transpose(d), "
      "dimensions={1,0} }";
  auto module = ir::ParseOrDie(text);
  auto expected = interp::Evaluate(*module, testing::RandomArguments(*module, 5));
  ASSERT_OK(expected.status());
  auto made = Run(text, GpuLibraryUse::kAlways);
  ASSERT_OK(made.status());
  EXPECT_EQ(testing::Difference(*expected, made->results[0], 1e-6, 1e-4), "");
  EXPECT_EQ(CountBlas("gemms"), 1);
}

// Factors are rounded where the schedule's may be, and there alone; the stand-in refuses what would
// not be exact.
TEST_F(CublasLt, TF32WhereItIsAllowed) {
  auto module = ir::ParseOrDie(kPlain);
  std::shared_ptr<GpuMachine> machine = Machine(BlasOptions());
  auto compiled = testing::CompileWithKernels(std::move(module), machine->target());
  ASSERT_OK(compiled.status());
  kernel::ScheduledKernel& kernel = compiled->lowered.kernels.at(0);
  auto stream = machine->MakeStream();
  ASSERT_OK(stream.status());
  std::vector<GpuSpan> args;
  for (int64_t elements : {64 * 96, 96 * 160, 64 * 160, 1024}) {
    auto memory = machine->Allocate(4 * elements, **stream);
    ASSERT_OK(memory.status());
    args.push_back({*memory, 4 * elements});
  }
  for (bool tf32 : {false, true}) {
    target::Gpu gpu = machine->target().gpu;
    gpu.tf32 = tf32;
    kernel.schedule = kernel::ScheduleGpuGemm(kernel.kernel, gpu).value();
    auto gemm = compiler::AsLibraryGemm(kernel);
    ASSERT_TRUE(gemm.has_value());
    auto found = machine->FindLibraryGemm(*gemm);
    ASSERT_OK(found.status());
    ASSERT_NE(*found, nullptr);
    // Without its workspace it is not launched.
    EXPECT_EQ((*stream)->Launch(**found, std::span(args).first(3)).code(), Code::kInvalidArgument);
    ASSERT_OK((*stream)->Launch(**found, args));
    EXPECT_EQ(CountBlas("rounded"), tf32 ? 1 : 0);
  }
  EXPECT_EQ(CountBlas("gemms"), 2);
  for (const GpuSpan& span : args) machine->Free(span.address, span.bytes, **stream);
}

// Whatever fails when a program is loaded, it runs; a launch that fails is its failure.
TEST_F(CublasLt, EachCallFailsOnce) {
  for (GpuLibraryUse use : {GpuLibraryUse::kAuto, GpuLibraryUse::kAlways}) {
    int64_t failed = 0, calls = 0;
    for (int64_t n = 1;; ++n) {
      standin_.reset();
      Configure("launch_time=10");
      std::filesystem::remove_all(folder_);
      const int64_t gemms = CountBlas("gemms");
      FailBlas(nullptr, n, 1);
      auto made = Run(kSmall, use);
      calls = CountBlas("calls");
      FailBlas(nullptr, 0, 0);
      if (!made.ok()) {
        ++failed;
        EXPECT_EQ(made.status().ToString(),
                  "INTERNAL: cublasLtMatmul: CUBLAS_STATUS_INTERNAL_ERROR");
      } else if (calls >= n && CountBlas("gemms") == gemms) {
        EXPECT_GT(Count("launches"), 0) << n;
      }
      EXPECT_EQ(CountBlas("live"), 0) << "call " << n;
      EXPECT_EQ(CountBlas("misuse"), 0) << "call " << n;
      EXPECT_EQ(Count("live"), 0) << "call " << n;
      EXPECT_EQ(Count("leaked"), 0) << "call " << n;
      EXPECT_EQ(Count("depth"), 0) << "call " << n;
      EXPECT_EQ(Count("misuse"), 0) << "call " << n;
      if (HasFailure() || calls < n) break;
    }
    EXPECT_EQ(failed, 1);
    EXPECT_GT(calls, 20);
  }
}

// The same of the driver's calls: nothing leaks, and what is asked for again works.
TEST_F(CublasLt, EachCallOfTheDriverFailsOnce) {
  int64_t failed = 0, calls = 0;
  for (int64_t n = 1;; ++n) {
    standin_.reset();
    Configure("launch_time=10,deferred=1");
    std::filesystem::remove_all(folder_);
    Fail(nullptr, n, 1, Error::kInvalidValue);
    auto made = Run(kSmall);
    calls = Count("calls");
    FailNothing();
    failed += made.ok() ? 0 : 1;
    if (!made.ok()) EXPECT_NE(made.status().message().find("cu"), std::string_view::npos);
    EXPECT_EQ(CountBlas("live"), 0) << "call " << n;
    EXPECT_EQ(Count("live"), 0) << "call " << n;
    EXPECT_EQ(Count("leaked"), 0) << "call " << n;
    EXPECT_EQ(Count("depth"), 0) << "call " << n;
    EXPECT_EQ(Count("misuse"), 0) << "call " << n;
    if (HasFailure() || calls < n) break;
  }
  EXPECT_GT(failed, 10);
  EXPECT_LT(failed, calls);
}

TEST_F(CublasLt, ALostContext) {
  for (const char* deferred : {"deferred=0", "deferred=1"}) {
    standin_.reset();
    Configure(deferred);
    standin_.fail_work(static_cast<int>(Error::kIllegalAddress));
    // The negation is a kernel of ours, which fails.
    auto made = Run(kProgram, GpuLibraryUse::kAlways);
    EXPECT_FALSE(made.ok());
    EXPECT_NE(made.status().message().find("device context is lost"), std::string_view::npos);
    EXPECT_EQ(Count("leaked"), 0);
    EXPECT_EQ(Count("misuse"), 0);
    // It has taken the library's state along.
    EXPECT_EQ(CountBlas("live"), 1);
    standin_.forget();
    blas_.reset();
  }
}

KILN_LABEL(standin, "CublasLt");

}  // namespace
}  // namespace kiln::device::cuda

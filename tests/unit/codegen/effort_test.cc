// Kernels whose time does not count have short schedules, and the results have the same bits; gemms
// have code of their own where it pays.
#include "codegen/effort.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "device/cpu/executable.h"
#include "kernel/schedule/cpu/shorten.h"
#include "random/rows.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/literal.h"

namespace kiln::codegen {
namespace {

// The nests that a shorter schedule makes a difference to.
struct Met {
  int pipelined = 0, prefetched = 0, squares = 0, unrolled = 0;
};

LoweredProgram WithShortSchedules(LoweredProgram lowered, const target::Cpu& cpu, Met& met) {
  for (kernel::ScheduledKernel& k : lowered.kernels) {
    auto* nest = std::get_if<kernel::CpuNestSchedule>(&k.schedule);
    if (!nest || k.kernel.kind != kernel::Kernel::Kind::kNest) continue;
    kernel::CpuNestSchedule shortened = kernel::Shortened(k.kernel, *nest, cpu);
    met.pipelined += nest->pipelined && !shortened.pipelined;
    met.prefetched += !nest->prefetches.empty() && shortened.prefetches.empty();
    met.squares += nest->tile_variable.valid() && !shortened.tile_variable.valid();
    for (kernel::StageId s : nest->stages.ids()) {
      met.unrolled += shortened.stages[s].unroll < nest->stages[s].unroll;
    }
    *nest = std::move(shortened);
  }
  return lowered;
}

void CheckBits(const ir::Module& module, target::Target target, Met& met) {
  const std::vector<Literal> arguments = testing::RandomArguments(module, 3);
  auto compiled =
      testing::CompileWithKernels(module.Clone(), target, {.optimization = Optimization::kFull});
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  program::Artefact shortened = compiled->artefact;
  auto code = GenerateCpu(WithShortSchedules(compiled->lowered, target.cpu, met), target.cpu,
                          {.optimization = Optimization::kFull});
  ASSERT_TRUE(code.ok()) << code.status().ToString();
  shortened.code = *std::move(code);
  std::vector<std::unique_ptr<testing::Execution>> executions;
  for (const program::Artefact* artefact : {&compiled->artefact, &shortened}) {
    auto executable =
        device::CpuExecutable::Load(*artefact, testing::Execution::allocator, testing::Pool());
    ASSERT_TRUE(executable.ok()) << executable.status().ToString();
    auto execution = std::make_unique<testing::Execution>(*artefact);
    execution->SetArguments(arguments);
    const Status status = (*executable)->Run(execution->arguments(), execution->results(), {});
    ASSERT_TRUE(status.ok()) << status.ToString();
    executions.push_back(std::move(execution));
  }
  EXPECT_TRUE(executions[0]->SameBits(*executions[1]));
}

TEST(Effort, ShortSchedulesGiveTheSameBits) {
  auto transposed = ir::ParseOrDie(R"(HloModule squares
ENTRY e { x = f32[83,70] parameter(0)
  y = f32[70,83] parameter(1)
  t = f32[70,83] transpose(x), dimensions={1,0}
  s = f32[70,83] add(t, y)
  ROOT r = f32[70,83] exponential(s) })");
  auto columns = ir::ParseOrDie(R"(HloModule columns
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[37,300] parameter(0)
  zero = f32[] constant(0)
  s = f32[300] reduce(x, zero), dimensions={0}, to_apply=add
  b = f32[37,300] broadcast(s), dimensions={1}
  d = f32[37,300] subtract(x, b)
  ROOT r = (f32[300], f32[37,300]) tuple(s, d) })");
  auto softmax = ir::ParseOrDie(R"(HloModule softmax
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b) }
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[2000,150] parameter(0)
  least = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[2000] reduce(x, least), dimensions={1}, to_apply=max
  mb = f32[2000,150] broadcast(m), dimensions={0}
  d = f32[2000,150] subtract(x, mb)
  p = f32[2000,150] exponential(d)
  s = f32[2000] reduce(p, zero), dimensions={1}, to_apply=add
  sb = f32[2000,150] broadcast(s), dimensions={0}
  ROOT r = f32[2000,150] divide(p, sb) })");
  Met met;
  for (int bytes : {64, 32, 16}) {
    target::Target target = target::HostCpuWithVectors(bytes);
    CheckBits(*transposed, target, met);
    CheckBits(*columns, target, met);
    // To a machine of small caches small arrays are large.
    target.cpu.l2_bytes = target.cpu.l3_bytes = 256;
    CheckBits(*softmax, target, met);
    for (uint64_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(Cat("seed ", seed, ", vectors of ", bytes, " bytes"));
      CheckBits(*testing::RandomRowsModule(seed), target, met);
    }
  }
  EXPECT_GT(met.pipelined, 0);
  EXPECT_GT(met.prefetched, 0);
  EXPECT_GT(met.squares, 0);
  EXPECT_GT(met.unrolled, 0);
}

// A matrix product of `size` rows, sums of a few of its values, and the same sums in a loop where
// `in_loop`.
std::string ProductAndSums(int64_t size, bool in_loop) {
  const char* sums = R"(
sums { x = f32[16,1024] parameter(0)
  zero = f32[] constant(0)
  s = f32[16] reduce(x, zero), dimensions={1}, to_apply=add
  b = f32[16,1024] broadcast(s), dimensions={0}
  ROOT d = f32[16,1024] subtract(x, b) }
)";
  std::string text = Cat(R"(HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
)",
                         sums);
  if (in_loop) {
    text += R"(
condition { t = (s32[], f32[16,1024]) parameter(0)
  n = s32[] get-tuple-element(t), index=0
  most = s32[] constant(9)
  ROOT c = pred[] compare(n, most), direction=LT }
body { t = (s32[], f32[16,1024]) parameter(0)
  n = s32[] get-tuple-element(t), index=0
  x = f32[16,1024] get-tuple-element(t), index=1
  one = s32[] constant(1)
  m = s32[] add(n, one)
  y = f32[16,1024] call(x), to_apply=sums
  ROOT r = (s32[], f32[16,1024]) tuple(m, y) }
)";
  }
  text +=
      Cat("ENTRY e { x = f32[", size, ",1024] parameter(0)\n  w = f32[1024,1024] parameter(1)\n",
          "  d = f32[", size, ",1024] dot(x, w), lhs_contracting_dims={1}, ",
          "rhs_contracting_dims={0}\n  p = f32[16,1024] slice(d), slice={[0:16], [0:1024]}\n");
  if (in_loop) {
    text += R"(  zero = s32[] constant(0)
  t = (s32[], f32[16,1024]) tuple(zero, p)
  l = (s32[], f32[16,1024]) while(t), condition=condition, body=body
  y = f32[16,1024] get-tuple-element(l), index=1
)";
  } else {
    text += "  y = f32[16,1024] call(p), to_apply=sums\n";
  }
  return text + Cat("  ROOT r = (f32[", size, ",1024], f32[16,1024]) tuple(d, y) }");
}

// Whether the kernel of the sums has a short schedule, and is quick.
struct Planned {
  bool shortened = false, quick = false;
};

Planned PlanSums(int64_t size, bool in_loop, Optimization optimization) {
  auto compiled =
      testing::CompileWithKernels(ir::ParseOrDie(ProductAndSums(size, in_loop)), target::HostCpu());
  EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
  if (!compiled.ok()) return {};
  const LoweredProgram& lowered = compiled->lowered;
  const Effort effort = PlanEffort(lowered, optimization, false);
  int sums = 0, shortened = 0, quick = 0;
  for (program::KernelId k : lowered.kernels.ids()) {
    const auto& stages = lowered.kernels[k].kernel.stages;
    const bool is_nest =
        std::holds_alternative<kernel::CpuNestSchedule>(lowered.kernels[k].schedule);
    if (!is_nest || stages.front().reductions.empty()) {
      EXPECT_FALSE(!is_nest && effort.shortened[k]);
      continue;
    }
    ++sums;
    shortened += effort.shortened[k];
    quick += effort.quick[k];
  }
  EXPECT_GT(sums, 0);
  return {shortened == sums, quick == sums};
}

bool HasShortSums(int64_t size, bool in_loop, Optimization optimization) {
  return PlanSums(size, in_loop, optimization).shortened;
}
bool HasQuickSums(int64_t size, bool in_loop, Optimization optimization) {
  return PlanSums(size, in_loop, optimization).quick;
}

TEST(Effort, KernelsOfLittleTimeHaveShortSchedules) {
  EXPECT_TRUE(HasShortSums(2048, false, Optimization::kAuto));
  EXPECT_TRUE(HasShortSums(2048, false, Optimization::kQuick));
  EXPECT_FALSE(HasShortSums(2048, false, Optimization::kFull));
  // The product takes little more time.
  EXPECT_FALSE(HasShortSums(16, false, Optimization::kAuto));
  // How often a loop goes round may not be known.
  EXPECT_FALSE(HasShortSums(2048, true, Optimization::kAuto));
}

// Whether updates of matrices of `size` rows and columns by products with short sums share the code
// of their products.
bool UpdatesShareTheirGemm(int64_t size, int updates, Optimization optimization) {
  const std::string matrix = Cat("f32[", size, ",", size, "]");
  std::string text = "HloModule update\nENTRY e {\n", types, results;
  for (int i = 0; i < updates; ++i) {
    text += Cat("x", i, " = f32[", size, ",96] parameter(", 3 * i, ")\n");
    text += Cat("y", i, " = f32[96,", size, "] parameter(", 3 * i + 1, ")\n");
    text += Cat("w", i, " = ", matrix, " parameter(", 3 * i + 2, ")\n");
    text += Cat("d", i, " = ", matrix, " dot(x", i, ", y", i,
                "), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n");
    text += Cat("r", i, " = ", matrix, i == 0 ? " subtract(w" : " add(w", i, ", d", i, ")\n");
    types += Cat(i == 0 ? "" : ", ", matrix);
    results += Cat(i == 0 ? "r" : ", r", i);
  }
  text += Cat("ROOT all = (", types, ") tuple(", results, ") }");
  auto compiled = testing::CompileWithKernels(ir::ParseOrDie(text), target::HostCpu());
  EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
  if (!compiled.ok()) return false;
  std::string code;
  const auto dump = [&](std::string_view, std::string_view made) { code += made; };
  auto objects = GenerateCpu(compiled->lowered, target::HostCpu().cpu,
                             {.optimization = optimization, .dump = dump});
  EXPECT_TRUE(objects.ok()) << objects.status().ToString();
  EXPECT_NE(code.find("define "), std::string::npos);
  return code.find("@\"gemm ") != std::string::npos;
}

TEST(Effort, UpdatesOfLargeMatricesHaveTheirOwnGemm) {
  EXPECT_FALSE(UpdatesShareTheirGemm(288, 1, Optimization::kAuto));
  // A few results gain less than LLVM's time, and the code of two is one function.
  EXPECT_TRUE(UpdatesShareTheirGemm(192, 1, Optimization::kAuto));
  EXPECT_TRUE(UpdatesShareTheirGemm(288, 2, Optimization::kAuto));
  EXPECT_TRUE(UpdatesShareTheirGemm(288, 1, Optimization::kQuick));
}

// How many functions of gemms the code of a module has whose names begin so, for vectors of 32
// bytes at most.
int GemmsOf(const std::string& text, std::string_view name) {
  target::Target target = target::HostCpu();
  target.cpu.vector_bytes = std::min<int64_t>(target.cpu.vector_bytes, 32);
  auto compiled = testing::CompileWithKernels(ir::ParseOrDie(text), target);
  EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
  if (!compiled.ok()) return -1;
  std::string code;
  const auto dump = [&](std::string_view, std::string_view made) { code += made; };
  auto objects = GenerateCpu(compiled->lowered, target.cpu, {.dump = dump});
  EXPECT_TRUE(objects.ok()) << objects.status().ToString();
  const std::string begin = Cat("define internal void @\"", name);
  int count = 0;
  for (size_t at = code.find(begin); at != std::string::npos; at = code.find(begin, at + 1)) {
    ++count;
  }
  return count;
}

TEST(Effort, ProductsOfOtherSizesShareTheirGemm) {
  const auto module = [](int products) {
    const std::string_view dots[] = {
        "x0 = f32[144,256] parameter(0)\ny0 = f32[256,256] parameter(1)\n"
        "d0 = f32[144,256] dot(x0, y0), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n",
        "x1 = f32[196,192] parameter(2)\ny1 = f32[192,256] parameter(3)\n"
        "d1 = f32[196,256] dot(x1, y1), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"};
    std::string text = "HloModule products\nENTRY e {\n";
    for (int i = 0; i < products; ++i) text += dots[i];
    return text + (products == 1 ? "ROOT r = (f32[144,256]) tuple(d0) }"
                                 : "ROOT r = (f32[144,256], f32[196,256]) tuple(d0, d1) }");
  };
  EXPECT_EQ(GemmsOf(module(1), "gemm"), 0);
  EXPECT_EQ(GemmsOf(module(2), "gemm of any A and size into C"), 1);
  // Sums of numbers that cancel out.
  testing::Check(module(2), 1e-5, 1e-4);
}

// One of them has every other window, so that the rows of its input are elsewhere.
TEST(Effort, ConvolutionsOfOtherStridesShareTheirGemm) {
  const std::string text = R"(HloModule convolutions
ENTRY e {
  x = f32[1,29,29,128] parameter(0)
  y = f32[1,16,16,128] parameter(1)
  v = f32[3,3,128,128] parameter(2)
  w = f32[3,3,128,128] parameter(3)
  a = f32[1,14,14,128] convolution(x, v), window={size=3x3 stride=2x2}, dim_labels=b01f_01io->b01f
  b = f32[1,14,14,128] convolution(y, w), window={size=3x3}, dim_labels=b01f_01io->b01f
  s = f32[1,14,14,128] negate(a)
  t = f32[1,14,14,128] abs(b)
  ROOT r = (f32[1,14,14,128], f32[1,14,14,128]) tuple(s, t)
})";
  EXPECT_EQ(GemmsOf(text, "gemm of any windows"), 1);
  EXPECT_EQ(GemmsOf(text, "gemm"), 1);
  testing::Check(text, 1e-5, 1e-4);
}

TEST(Effort, KernelsOfNextToNoTimeAreQuick) {
  EXPECT_TRUE(HasQuickSums(2048, false, Optimization::kAuto));
  EXPECT_FALSE(HasQuickSums(2048, false, Optimization::kFull));
  EXPECT_FALSE(HasQuickSums(16, false, Optimization::kAuto));
  EXPECT_FALSE(HasQuickSums(2048, true, Optimization::kAuto));
}

TEST(Effort, QuickKernelsGiveTheSameBits) {
  auto module = ir::ParseOrDie(ProductAndSums(2048, false));
  const std::vector<Literal> arguments = testing::RandomArguments(*module, 5);
  std::vector<std::unique_ptr<const program::Artefact>> artefacts;
  std::vector<std::unique_ptr<testing::Execution>> executions;
  for (Optimization optimization : {Optimization::kAuto, Optimization::kFull}) {
    auto compiled = testing::CompileWithKernels(module->Clone(), target::HostCpu(),
                                                {.optimization = optimization});
    ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
    artefacts.push_back(std::make_unique<program::Artefact>(std::move(compiled->artefact)));
    const program::Artefact& artefact = *artefacts.back();
    auto executable =
        device::CpuExecutable::Load(artefact, testing::Execution::allocator, testing::Pool());
    ASSERT_TRUE(executable.ok()) << executable.status().ToString();
    auto execution = std::make_unique<testing::Execution>(artefact);
    execution->SetArguments(arguments);
    const Status status = (*executable)->Run(execution->arguments(), execution->results(), {});
    ASSERT_TRUE(status.ok()) << status.ToString();
    executions.push_back(std::move(execution));
  }
  EXPECT_TRUE(executions[0]->SameBits(*executions[1]));
}

// What the code of one elementwise op is expected to cost.
int64_t CostOfOp(std::string_view op) {
  auto compiled = testing::CompileWithKernels(
      ir::ParseOrDie(Cat("HloModule one\nENTRY e { x = f32[1000] parameter(0)\n"
                         "  ROOT y = f32[1000] ",
                         op, "(x) }")),
      target::HostCpu());
  EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
  return compiled.ok() ? PlanEffort(compiled->lowered, Optimization::kFull, false).costs.front()
                       : 0;
}

TEST(Effort, RootsAreInstructionsAndNoFunctions) {
  EXPECT_LE(CostOfOp("rsqrt"), CostOfOp("negate"));
  EXPECT_LE(CostOfOp("sqrt"), CostOfOp("negate"));
  EXPECT_GT(CostOfOp("exponential"), CostOfOp("negate"));
}

// Gemms without epilogues, whose code is optimised in any case, do not count.
TEST(Effort, ManyGemmsAreNoLargeProgram) {
  std::string text = "HloModule gemms\nENTRY e {\n", types, results;
  for (int i = 0; i < 160; ++i) {
    text += Cat("x", i, " = f32[32,", 32 + i, "] parameter(", 2 * i, ")\n");
    text += Cat("y", i, " = f32[", 32 + i, ",32] parameter(", 2 * i + 1, ")\n");
    text += Cat("d", i, " = f32[32,32] dot(x", i, ", y", i,
                "), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n");
    types += Cat(i == 0 ? "" : ", ", "f32[32,32]");
    results += Cat(i == 0 ? "d" : ", d", i);
  }
  text += Cat("ROOT all = (", types, ") tuple(", results, ") }");
  auto compiled = testing::CompileWithKernels(ir::ParseOrDie(text), target::HostCpu());
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  const auto gemms = std::ranges::count_if(compiled->lowered.kernels, [](const auto& k) {
    return std::holds_alternative<kernel::CpuGemm>(k.schedule);
  });
  EXPECT_EQ(gemms, 160);
  EXPECT_FALSE(PlanEffort(compiled->lowered, Optimization::kAuto, false).large);
}

}  // namespace
}  // namespace kiln::codegen

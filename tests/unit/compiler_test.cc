#include "compiler/compiler.h"

#include <gtest/gtest.h>

#include <map>

#include "hlo_test_util.h"
#include "ir/text.h"

namespace kiln::compiler {
namespace {

constexpr char kModule[] = R"(HloModule step
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[20,30] parameter(0)
  w = f32[30,10] parameter(1)
  d = f32[20,10] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[20,10] tanh(d)
  zero = f32[] constant(0)
  ROOT r = f32[20] reduce(t, zero), dimensions={1}, to_apply=add })";

std::map<std::string, std::string> Dumps(Options options) {
  std::map<std::string, std::string> files;
  options.dump = [&](const std::string& name, std::string_view text) { files[name] = text; };
  options.module_number = 7;
  auto artefact = Compile(ir::ParseOrDie(kModule), target::HostCpu(), options);
  EXPECT_TRUE(artefact.ok()) << artefact.status().ToString();
  return files;
}

TEST(Compiler, DumpsEveryStageUnderXlasNames) {
  auto files = Dumps({.dump_ptx_sm = 80});
  for (const char* suffix :
       {"before_optimizations.txt", "cpu_after_optimizations.txt",
        "cpu_after_optimizations-buffer-assignment.txt", "plan.txt", "ir-no-opt.ll",
        "0000.optimization.after_pipeline-start.before_outline-grids.dot"}) {
    EXPECT_TRUE(files.contains(Cat("module_0007.step.", suffix))) << suffix;
  }
  // What was dumped as HLO text reads back.
  EXPECT_TRUE(ir::ParseHloText(files["module_0007.step.before_optimizations.txt"]).ok());
  EXPECT_TRUE(ir::ParseHloText(files["module_0007.step.cpu_after_optimizations.txt"]).ok());
  int dots = 0, ptx = 0;
  for (const auto& [name, text] : files) {
    dots += name.ends_with(".dot") && text.find("digraph") != std::string::npos;
    ptx += name.ends_with(".ptx") && text.find(".target sm_80") != std::string::npos;
  }
  EXPECT_GE(dots, 10);  // one for each pass
  EXPECT_EQ(ptx, 1);
}

TEST(Compiler, PassesCanBeSwitchedOffAndAreTimed) {
  int passes = 0;
  Options options;
  options.on_pass = [&](std::string_view, int64_t microseconds, bool) {
    EXPECT_GE(microseconds, 0);
    ++passes;
  };
  auto fused = Compile(ir::ParseOrDie(kModule), target::HostCpu(), options);
  ASSERT_TRUE(fused.ok());
  options.disabled_passes = {"fusion"};
  auto apart = Compile(ir::ParseOrDie(kModule), target::HostCpu(), options);
  ASSERT_TRUE(apart.ok());
  EXPECT_GT(passes, 10);
  EXPECT_LT(plan::CountKernels(fused->program.steps), plan::CountKernels(apart->program.steps));
}

TEST(Compiler, SymbolsMustBeGone) {
  auto module = ir::ParseOrDie(
      "HloModule m\nENTRY e { x = f32[N] parameter(0)\n ROOT n = f32[N] negate(x) }");
  auto artefact = Compile(std::move(module), target::HostCpu(), {});
  ASSERT_FALSE(artefact.ok());
  EXPECT_EQ(artefact.status().code(), Code::kInvalidArgument);
  EXPECT_NE(artefact.status().message().find("f32[N]"), std::string_view::npos);
}

TEST(Compiler, WholeProgramsOnAGpuArePtx) {
  auto artefact = Compile(ir::ParseOrDie(kModule), target::NvidiaGpu(80).value(), Options());
  ASSERT_TRUE(artefact.ok()) << artefact.status().ToString();
  ASSERT_EQ(artefact->objects.size(), 1u);
  EXPECT_NE(artefact->objects[0].find(".target sm_80"), std::string::npos);
  EXPECT_NE(artefact->objects[0].find(plan::GpuSymbol(artefact->program, 0, 0)), std::string::npos);
}

}  // namespace
}  // namespace kiln::compiler

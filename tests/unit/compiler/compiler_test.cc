#include "compiler/compiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "ir/text.h"
#include "support/hlo.h"
#include "support/labels.h"

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

int64_t CountOf(const TraceSink& trace, std::string_view category) {
  return std::ranges::count(trace.Events(), category, &TraceEvent::category);
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

TEST(Compiler, DumpsTheWantedStagesInTheWantedForms) {
  Options options;
  options.dump_forms = {.html = true};
  options.dump_stage_forms = {.text = true, .dot = true};
  options.dumps_pass = [](std::string_view pass) { return pass == "fusion"; };
  std::vector<std::string> stages;
  options.at_stage = [&](const passes::Stage& stage, std::string_view platform) {
    EXPECT_EQ(platform, "cpu");
    stages.push_back(Cat(stage.after, " ", stage.before));
  };
  const auto files = Dumps(options);
  EXPECT_TRUE(files.contains("module_0007.step.before_optimizations.html"));
  EXPECT_TRUE(files.contains("module_0007.step.cpu_after_optimizations.html"));
  EXPECT_FALSE(files.contains("module_0007.step.before_optimizations.txt"));
  int64_t texts = 0, dots = 0;
  for (const auto& [name, text] : files) {
    if (name.find(".optimization.") == std::string::npos) continue;
    EXPECT_NE(name.find("_fusion"), std::string::npos) << name;
    texts += name.ends_with(".txt") && ir::ParseHloText(text).ok();
    dots += name.ends_with(".dot");
  }
  EXPECT_EQ(texts, 2);
  EXPECT_EQ(dots, 2);
  // The callback sees all of them.
  EXPECT_GE(stages.size(), 10);
  EXPECT_TRUE(stages.front().starts_with("pipeline-start"));
  EXPECT_TRUE(stages.back().ends_with("pipeline-end"));
}

TEST(Compiler, LargeConstantsAreLeftOutOfDumps) {
  std::string numbers;
  for (int i = 0; i < 300; ++i) numbers += Cat(i > 0 ? ", " : "", i, ".25");
  const std::string text =
      Cat("HloModule m\nENTRY e { x = f32[300] parameter(0)\n c = f32[300] ", "constant({", numbers,
          "})\n d = f32[3] constant({1.5, 2.5, 3.5})\n",
          " y = f32[300] add(x, c)\n ROOT t = (f32[300], f32[3]) tuple(y, d) }");
  auto dumped = [&](Options options) {
    std::string all;
    options.dump = [&](const std::string&, std::string_view file) { all += file; };
    EXPECT_TRUE(Compile(ir::ParseOrDie(text), target::HostCpu(), options).ok());
    return all;
  };
  const std::string elided = dumped({});
  EXPECT_EQ(elided.find("299.25"), std::string::npos);
  EXPECT_NE(elided.find("constant({...})"), std::string::npos);
  EXPECT_NE(elided.find("constant({1.5, 2.5, 3.5})"), std::string::npos);
  EXPECT_NE(dumped({.dump_literal_elements = INT64_MAX}).find("299.25"), std::string::npos);
}

// Bars that contain others count once.
int64_t CoveredBy(const TraceSink& trace, int32_t lane) {
  std::vector<TraceEvent> events = trace.Events();
  std::ranges::sort(events, {}, &TraceEvent::start_ns);
  int64_t covered = 0, end = 0;
  for (const TraceEvent& e : events) {
    if (e.lane != lane) continue;
    const int64_t until = e.start_ns + e.duration_ns;
    covered += std::max<int64_t>(0, until - std::max(end, e.start_ns));
    end = std::max(end, until);
  }
  return covered;
}

TEST(Compiler, ATimelineShowsWhatCompilingDoes) {
  TraceSink trace;
  Options options;
  options.trace = &trace;
  options.threads = 2;
  const int64_t start = TraceSink::Now();
  auto artefact = Compile(ir::ParseOrDie(kModule), target::HostCpu(), options);
  const int64_t duration = TraceSink::Now() - start;
  ASSERT_TRUE(artefact.ok());
  EXPECT_GE(CoveredBy(trace, TraceSink::LaneOfThisThread()), duration * 8 / 10);
  int64_t modules = 0, kernels = 0;
  for (const TraceEvent& e : trace.Events()) {
    EXPECT_FALSE(trace.LaneName(e.lane).empty()) << e.name;
    if (e.category != "codegen" || !e.name.starts_with("emit ")) continue;
    ++modules;
    for (const auto& [key, value] : e.args)
      kernels += key == "kernels" ? std::get<int64_t>(value) : 0;
  }
  EXPECT_EQ(modules, std::ssize(artefact->code));
  EXPECT_EQ(kernels, std::ssize(artefact->program.kernels));
  EXPECT_EQ(CountOf(trace, "codegen"), 2 * modules);
}

TEST(Compiler, PassesCanBeSwitchedOffAndAreTimed) {
  TraceSink trace;
  Options options;
  options.trace = &trace;
  auto fused = Compile(ir::ParseOrDie(kModule), target::HostCpu(), options);
  ASSERT_TRUE(fused.ok());
  options.disabled_passes = {"fusion"};
  auto apart = Compile(ir::ParseOrDie(kModule), target::HostCpu(), options);
  ASSERT_TRUE(apart.ok());
  EXPECT_GT(CountOf(trace, "pass"), 10);
  EXPECT_LT(program::CountKernels(fused->program.steps),
            program::CountKernels(apart->program.steps));
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
  ASSERT_EQ(artefact->code.size(), 1u);
  EXPECT_NE(artefact->code[0].find(".target sm_80"), std::string::npos);
  EXPECT_NE(artefact->code[0].find(artefact->program.kernels.at(0).grids.at(0).symbol),
            std::string::npos);
}

KILN_LABEL(text, "Compiler");

// Before anything else, on every target, in all that is called.
TEST(Compiler, RefusesSessionOnlyOps) {
  constexpr std::string_view kText = R"(HloModule m
inner { p = f32[4] parameter(0)
  ROOT shown = f32[4] custom-call(p), custom_call_target="kiln.print" }
body { p = f32[4] parameter(0)
  ROOT c = f32[4] call(p), to_apply=inner }
condition { p = f32[4] parameter(0)
  ROOT c = pred[] constant(false) }
ENTRY e { x = f32[4] parameter(0)
  ROOT w = f32[4] while(x), condition=condition, body=body })";
  Options options;
  bool is_dumped = false;
  options.dump = [&](const std::string&, std::string_view) { is_dumped = true; };
  for (const target::Target& target :
       {target::HostCpu(), *target::NvidiaGpu(80), target::Reference()}) {
    EXPECT_EQ(Compile(ir::ParseOrDie(kText), target, options).status().ToString(),
              "INVALID_ARGUMENT: 'shown' (kiln.print) cannot be compiled: it prints during the "
              "run; run it in a session");
    EXPECT_EQ(
        Compile(ir::ParseOrDie("ENTRY e { x = f32[N] parameter(0)\n"
                               "y = f32[4] constant({1, 2, 3, 4})\n"
                               "ROOT u = custom-call(y), custom_call_target=\"kiln.unique\" }"),
                target, options)
            .status()
            .ToString(),
        "INVALID_ARGUMENT: 'u' (kiln.unique) cannot be compiled: the size of its result "
        "depends on the values; run it in a session");
  }
  EXPECT_FALSE(is_dumped);
}

}  // namespace
}  // namespace kiln::compiler

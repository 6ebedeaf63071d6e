// Small kernels side by side: in plans, in results on any number of threads, in PTX.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/strings.h"
#include "compiler/compiler.h"
#include "interp/interpreter.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/labels.h"
#include "support/literal.h"

namespace kiln::testing {
namespace {

// Updates of `count` parameters of several sizes, each in the memory of its parameter where that is
// donated, and a sum of each gradient.
std::string Updates(int count, int64_t size, bool donated) {
  std::string body, results, shapes, aliases;
  for (int k = 0; k < count; ++k) {
    std::string shape = Cat("f32[", size + 7 * k, "]");
    body += Cat("  w", k, " = ", shape, " parameter(", 2 * k, ")\n  g", k, " = ", shape,
                " parameter(", 2 * k + 1, ")\n  d", k, " = ", shape, " multiply(g", k, ", g", k,
                ")\n  u", k, " = ", shape, " subtract(w", k, ", d", k, ")\n  s", k,
                " = f32[] reduce(g", k, ", zero), dimensions={0}, to_apply=plus\n");
    results += Cat(k ? ", " : "", "u", k, ", s", k);
    shapes += Cat(k ? ", " : "", shape, ", f32[]");
    aliases += Cat(k ? ", " : "", "{", 2 * k, "}: (", 2 * k, ", {}, may-alias)");
  }
  return Cat("HloModule updates", donated ? Cat(", input_output_alias={ ", aliases, " }") : "",
             R"(
plus { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY main {
  zero = f32[] constant(0)
)",
             body, "  ROOT r = (", shapes, ") tuple(", results, ")\n}\n");
}

const kernel::ScheduledKernel* BundleOf(const codegen::LoweredProgram& lowered) {
  auto at = std::ranges::find_if(lowered.kernels, [](const kernel::ScheduledKernel& k) {
    return std::holds_alternative<kernel::CpuBundle>(k.schedule) ||
           std::holds_alternative<kernel::GpuBundle>(k.schedule);
  });
  return at == lowered.kernels.end() ? nullptr : &*at;
}

TEST(Bundles, ManyUpdatesAreOneLaunch) {
  auto module = ir::ParseOrDie(Updates(24, 6000, false));
  auto loaded = Load(*module, true);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  const program::Program& program = loaded->artefact->program;
  const kernel::ScheduledKernel* bundle = BundleOf(*loaded->lowered);
  ASSERT_NE(bundle, nullptr) << program.ToString();
  EXPECT_EQ(program.steps.size(), 1u) << program.ToString();
  EXPECT_GE(kernel::PartsOf(bundle->schedule).size(), 24u);
  if (testing::IsTestOfGpu()) return;
  const auto& schedule = std::get<kernel::CpuBundle>(bundle->schedule);
  EXPECT_GT(schedule.max_tasks, 1);
  // Every item of a part is an item of the bundle, and no two parts share one.
  int64_t next = 0;
  for (const kernel::CpuBundle::Part& part : schedule.parts) {
    EXPECT_EQ(part.first_item, next);
    const auto& k = loaded->lowered->kernels[part.kernel];
    next += part.weight * kernel::ItemsOf(k.schedule)->count;
  }
  EXPECT_EQ(schedule.items, next);
}

TEST(Bundles, LittleWorkStaysApart) {
  auto module = ir::ParseOrDie(Updates(4, 100, false));
  auto loaded = Load(*module, true);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  // On a GPU a launch is dearer than little work.
  EXPECT_EQ(BundleOf(*loaded->lowered) != nullptr, testing::IsTestOfGpu());
}

TEST(Bundles, EqualOnAnyNumberOfThreads) {
  static runtime::ThreadPool pool(5);
  for (bool donated : {false, true}) {
    for (double task : {10.0, 0.02}) {
      SCOPED_TRACE(Cat(donated ? "donated, " : "", task));
      auto module = ir::ParseOrDie(Updates(30, 5000, donated));
      std::vector<Literal> arguments = RandomArguments(*module, 3);
      auto expected = interp::Evaluate(*module, arguments);
      ASSERT_TRUE(expected.ok()) << expected.status().ToString();
      auto loaded = Load(*module, true, 64, codegen::Optimization::kAuto, task);
      ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
      ASSERT_NE(BundleOf(*loaded->lowered), nullptr) << loaded->artefact->program.ToString();
      auto wide = testing::LoadOnPool(loaded->artefact, pool);
      ASSERT_TRUE(wide.ok()) << wide.status().ToString();
      Execution alone(*loaded->artefact), together(*loaded->artefact);
      alone.SetArguments(arguments);
      together.SetArguments(arguments);
      ASSERT_TRUE(loaded->executable->Run(alone.arguments(), alone.results(), {.threads = 1}).ok());
      ASSERT_TRUE((*wide)->Run(together.arguments(), together.results()).ok());
      EXPECT_EQ(Difference(*expected, alone.Result(), 1e-4, 1e-4), "");
      EXPECT_TRUE(alone.SameBits(together));
    }
  }
}

// What is donated is updated in place: no copy, and nothing in the arena.
TEST(Bundles, UpdateDonatedParametersInPlace) {
  auto module = ir::ParseOrDie(Updates(24, 6000, true));
  auto loaded = Load(*module, true);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  const program::Program& program = loaded->artefact->program;
  ASSERT_NE(BundleOf(*loaded->lowered), nullptr);
  EXPECT_EQ(program.arena_bytes, 0) << program.ToString();
  EXPECT_EQ(program.steps.size(), 1u) << program.ToString();
}

TEST(Bundles, InALoopStateStaysInPlace) {
  std::string state = "(s32[]", state_in, next, body;
  for (int k = 0; k < 20; ++k) {
    std::string shape = Cat("f32[", 9000 + 16 * k, "]");
    state += Cat(", ", shape);
    body += Cat("  x", k, " = ", shape, " get-tuple-element(t), index=", k + 1, "\n  y", k, " = ",
                shape, " multiply(x", k, ", x", k, ")\n");
    next += Cat(", y", k);
    state_in += Cat("  p", k, " = ", shape, " parameter(", k, ")\n");
  }
  state += ")";
  std::string initial;
  for (int k = 0; k < 20; ++k) initial += Cat(", p", k);
  auto module =
      ir::ParseOrDie(Cat("HloModule loop\nbody { t = ", state,
                         R"( parameter(0)
  i = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
)",
                         body, "  ROOT r = ", state, " tuple(n", next, ") }\ncond { t = ", state,
                         R"( parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(3)
  ROOT p = pred[] compare(i, n), direction=LT }
ENTRY e {
  z = s32[] constant(0)
)",
                         state_in, "  init = ", state, " tuple(z", initial, ")\n  ROOT w = ", state,
                         " while(init), condition=cond, body=body\n}\n"));
  std::vector<Literal> arguments = RandomArguments(*module, 5);
  auto expected = interp::Evaluate(*module, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  auto loaded = Load(*module, true);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  const program::Program& program = loaded->artefact->program;
  EXPECT_NE(BundleOf(*loaded->lowered), nullptr);
  for (const program::Step& step : program.steps) {
    const auto* loop = std::get_if<program::While>(&step.what);
    if (!loop) continue;
    for (const program::Step& inside : loop->body) {
      EXPECT_FALSE(std::holds_alternative<program::Copy>(inside.what)) << program.ToString();
    }
  }
  Execution run(*loaded->artefact);
  run.SetArguments(arguments);
  ASSERT_TRUE(loaded->executable->Run(run.arguments(), run.results()).ok());
  EXPECT_EQ(Difference(*expected, run.Result(), 1e-4, 1e-4), "");
}

TEST(Bundles, HaveDumpsAndPtx) {
  compiler::Options options;
  std::string plan, ptx;
  options.dump_ptx_sm = 80;
  options.dump = [&](const std::string& name, std::string_view text) {
    if (name.ends_with("plan.txt")) plan = text;
    if (text.find("_part_23") != std::string_view::npos) ptx = text;
  };
  auto artefact = compiler::Compile(ir::ParseOrDie(Updates(24, 6000, false)),
                                    target::HostCpuWithVectors(64), options);
  ASSERT_TRUE(artefact.ok()) << artefact.status().ToString();
  EXPECT_NE(plan.find("with arguments from "), std::string::npos) << plan;
  EXPECT_NE(ptx.find(".visible .entry"), std::string::npos);
  EXPECT_NE(ptx.find("%ctaid.x"), std::string::npos);
}

KILN_LABEL(text, "Bundles.HaveDumpsAndPtx");

}  // namespace
}  // namespace kiln::testing

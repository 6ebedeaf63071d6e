// Launches that may run at the same time: which are found, and that no order among them matters.
#include "compiler/cpu/waves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "compiler/backend.h"
#include "compiler/identify.h"
#include "compiler/lower.h"
#include "compiler/written.h"
#include "passes/pipelines.h"
#include "program/steps.h"
#include "random/fodder.h"
#include "random/module.h"
#include "random/rows.h"
#include "support/compiled.h"
#include "support/literal.h"

namespace kiln::compiler {
namespace {

using codegen::LoweredProgram;
using program::Launch;
using program::LaunchId;
using program::Slice;
using program::Step;
using program::Steps;

// --- Programs made by hand, of kernels with one input and one output

class ByHand {
 public:
  ByHand() {
    memory_ = lowered_.program.allocations.Add({program::Allocation::Kind::kArena, 0, 1 << 20});
    cpu_.task_microseconds = 10;
  }

  Slice At(int64_t offset, int64_t bytes = 64) const { return {memory_, offset, bytes}; }

  // Takes so long on one thread, and is worth so many threads.
  Step Run(const Slice& from, const Slice& to, double microseconds = 20, int64_t tasks = 1) {
    kernel::ScheduledKernel k;
    k.kernel.params = {{kernel::Param::Role::kInput, ElementType::kF32, from.bytes / 4},
                       {kernel::Param::Role::kOutput, ElementType::kF32, to.bytes / 4}};
    kernel::CpuNestSchedule schedule;
    schedule.microseconds = microseconds;
    schedule.max_tasks = tasks;
    schedule.items = 64;
    k.schedule = schedule;
    Launch launch;
    launch.kernel = lowered_.kernels.Add(std::move(k));
    launch.args = {from, to};
    launch.id = NewId();
    return {std::move(launch)};
  }
  Step Call() { return {program::HostCall{.target = "call", .id = NewId()}}; }
  Step Loop(Steps condition, Steps body) {
    return {program::While{
        .condition = std::move(condition), .predicate = At(0), .body = std::move(body)}};
  }

  // The order of the launches, with "(" and ")" around waves, and a blank between batches.
  std::string Find(Steps steps, int threads = 2) {
    lowered_.program.steps = std::move(steps);
    const Waves waves = FindWaves(lowered_, cpu_, threads);
    return TextOf(waves, lowered_.program.steps);
  }

  target::Cpu cpu_;

 private:
  LaunchId NewId() { return lowered_.program.launches.Add({"launch", {}, 0, 0}); }

  static std::string TextOf(const Waves& waves, const Steps& steps) {
    std::string text;
    const Wave* wave = nullptr;
    int32_t number = 0;  // in the wave
    for (const Step& step : steps) {
      if (const auto* launch = std::get_if<Launch>(&step.what)) {
        if (!wave && !waves.begun_by.empty() && waves.begun_by[launch->id] >= 0) {
          wave = &waves.waves[static_cast<size_t>(waves.begun_by[launch->id])];
          number = 0;
          text += '(';
        }
        text += static_cast<char>('a' + launch->id.value());
        if (!wave) continue;
        const bool is_last = ++number == wave->launches();
        if (is_last) text += ')';
        if (!is_last && std::ranges::find(wave->ends, number) != wave->ends.end()) text += ' ';
        if (is_last) wave = nullptr;
      } else if (std::holds_alternative<program::Copy>(step.what)) {
        text += '=';
      } else if (const auto* call = std::get_if<program::HostCall>(&step.what)) {
        text += static_cast<char>('A' + call->id.value());
      } else if (const auto* loop = std::get_if<program::While>(&step.what)) {
        text += Cat("[", TextOf(waves, loop->condition), "|", TextOf(waves, loop->body), "]");
      }
    }
    return text;
  }

  LoweredProgram lowered_;
  program::AllocationId memory_;
};

TEST(Waves, IndependentLaunchesRunSideBySide) {
  ByHand p;
  EXPECT_EQ(p.Find({p.Run(p.At(0), p.At(64)), p.Run(p.At(0), p.At(128)), p.Run(p.At(0), p.At(192)),
                    p.Run(p.At(0), p.At(256))}),
            "(a b c d)");
  ByHand one;
  EXPECT_EQ(one.Find({one.Run(one.At(0), one.At(64)), one.Run(one.At(0), one.At(128))}, 1), "ab");
}

TEST(Waves, AccessesOfTheSameBytesStayInOrder) {
  ByHand p;
  // It reads the other's result.
  EXPECT_EQ(p.Find({p.Run(p.At(0), p.At(64)), p.Run(p.At(64), p.At(128))}), "ab");
  // It writes what the other reads, or writes.
  EXPECT_EQ(p.Find({p.Run(p.At(0), p.At(64)), p.Run(p.At(128), p.At(0))}), "cd");
  EXPECT_EQ(p.Find({p.Run(p.At(0), p.At(64)), p.Run(p.At(128), p.At(64))}), "ef");
  // They have one byte in common.
  EXPECT_EQ(p.Find({p.Run(p.At(0), p.At(64, 65)), p.Run(p.At(192), p.At(128))}), "gh");
  EXPECT_EQ(p.Find({p.Run(p.At(0), p.At(64, 64)), p.Run(p.At(192), p.At(128))}), "(i j)");
  EXPECT_EQ(p.Find({p.Run(p.At(128), p.At(0)), p.Run(p.At(256), p.At(64, 65))}), "kl");
  EXPECT_EQ(p.Find({p.Run(p.At(128), p.At(0)), p.Run(p.At(256), p.At(64, 64))}), "(m n)");
}

TEST(Waves, StepsOfChainsAreTakenInTurn) {
  ByHand p;
  Steps chains;
  for (int64_t chain : {0, 1, 2}) {
    for (int64_t step : {0, 1}) {
      chains.push_back(p.Run(p.At(1024 * chain + 64 * step), p.At(1024 * chain + 64 * (step + 1))));
    }
  }
  EXPECT_EQ(p.Find(chains), "(a c e)(b d f)");
}

// Chains whose values are in the same memory, one after the other, have an order.
TEST(Waves, ReusedMemoryIsNotShared) {
  ByHand p;
  Steps chains;
  for (int64_t chain : {0, 1, 2}) {
    chains.push_back(p.Run(p.At(4096), p.At(0)));
    chains.push_back(p.Run(p.At(0), p.At(64)));
    chains.push_back(p.Run(p.At(64), p.At(1024 + 64 * chain)));
  }
  EXPECT_EQ(p.Find(chains), "ab(c d)e(f g)hi");
}

TEST(Waves, NothingPassesLoopsAndCalls) {
  ByHand p;
  Step a = p.Run(p.At(0), p.At(64)), b = p.Run(p.At(0), p.At(128)), c = p.Run(p.At(0), p.At(192));
  Step d = p.Run(p.At(0), p.At(256)), e = p.Run(p.At(0), p.At(320));
  EXPECT_EQ(p.Find({a, p.Call(), b}), "aFb");
  EXPECT_EQ(p.Find({a, p.Loop({b}, {c, d}), e}), "a[b|(c d)]e");
  EXPECT_EQ(p.Find({a, b, p.Loop({c}, {d}), e}), "(a b)[c|d]e");
}

TEST(Waves, CopiesAreInOrderWithTheLaunchesOfTheirMemory) {
  ByHand p;
  Step a = p.Run(p.At(0), p.At(64)), b = p.Run(p.At(0), p.At(128)), c = p.Run(p.At(192), p.At(256));
  EXPECT_EQ(p.Find({a, {program::Copy{p.At(64), p.At(320)}}, b}), "(a b)=");
  EXPECT_EQ(p.Find({a, {program::Copy{p.At(320), p.At(384)}}, b}), "=(a b)");
  EXPECT_EQ(p.Find({{program::Copy{p.At(320), p.At(0)}}, a, b}), "=(a b)");
  EXPECT_EQ(p.Find({a, {program::Copy{p.At(64), p.At(192)}}, c}), "a=c");
}

TEST(Waves, LaunchesThatHaveAllThreadsRunAlone) {
  ByHand p;
  Step a = p.Run(p.At(0), p.At(64)), b = p.Run(p.At(0), p.At(128), 100, 10);
  Step c = p.Run(p.At(0), p.At(192));
  EXPECT_EQ(p.Find({a, b, c}), "b(a c)");
  // On many threads, several of them gain.
  Step d = p.Run(p.At(0), p.At(256), 100, 10);
  EXPECT_EQ(p.Find({b, d}, 16), "bd");
  Steps many;
  for (int64_t i = 0; i < 16; ++i) many.push_back(p.Run(p.At(0), p.At(64 * (i + 1)), 100, 10));
  EXPECT_EQ(p.Find(many, 16), "(e f g h i j k l m n o p q r s t)");
}

TEST(Waves, TheGainMustBeWorthIt) {
  ByHand p;
  Step a = p.Run(p.At(0), p.At(64), 9), b = p.Run(p.At(0), p.At(128), 9);
  Step c = p.Run(p.At(0), p.At(192), 9);
  EXPECT_EQ(p.Find({a, b}), "ab");
  EXPECT_EQ(p.Find({a, b, c}), "(a b c)");
  // Beside a long one the gain is the time of the others.
  Step d = p.Run(p.At(0), p.At(256), 1000);
  EXPECT_EQ(p.Find({d, a}), "da");
  EXPECT_EQ(p.Find({d, a, b}), "(d ab)");
  // Tiny ones are handed over several at a time.
  Steps tiny;
  for (int64_t i = 0; i < 20; ++i) tiny.push_back(p.Run(p.At(0), p.At(64 * (i + 1)), 1.25));
  EXPECT_EQ(p.Find(tiny), "(efg hij klm nop qrs tuv wx)");
}

// Values of more bytes than the caches have are read before others are made.
TEST(Waves, ValuesStayInTheCaches) {
  ByHand p;
  p.cpu_.l2_bytes = 2000;
  Steps chains;
  for (int64_t chain : {0, 1, 2}) {
    const int64_t first = 4096 * chain;
    chains.push_back(p.Run(p.At(65536), p.At(first, 700)));
    chains.push_back(p.Run(p.At(first, 700), p.At(first + 1024, 700)));
  }
  EXPECT_EQ(p.Find(chains), "(a c)b(d e)f");
}

// --- Random programs

Result<LoweredProgram> LowerOpByOp(std::unique_ptr<ir::Module> module, const Backend& backend) {
  passes::PassContext context;
  context.target = &backend.target();
  KILN_RETURN_IF_ERROR(passes::RunPipeline("op_by_op", passes::OpByOpPipeline(), *module, context));
  KILN_ASSIGN_OR_RETURN(Lowered lowered, Lower(*module, backend, *context.fusions));
  return LoweredProgram(std::move(lowered));
}

// The result on the guarded memory of Execution.
Result<Literal> RunProgram(LoweredProgram lowered, const Backend& backend,
                           const std::vector<Literal>& arguments) {
  std::vector<std::string> texts;
  for (const kernel::ScheduledKernel& k : lowered.kernels) texts.push_back(k.kernel.ToString());
  Identify(lowered, backend.target(), {texts.begin(), texts.end()});
  backend.Finish(lowered);
  program::Artefact artefact;
  KILN_ASSIGN_OR_RETURN(artefact.code, backend.Generate(lowered, codegen::Options()));
  artefact.program = std::move(lowered.program);
  testing::Execution run(artefact);
  run.SetArguments(arguments);
  KILN_ASSIGN_OR_RETURN(
      std::unique_ptr<device::CpuExecutable> executable,
      device::CpuExecutable::Load(artefact, testing::Execution::allocator, testing::Pool()));
  KILN_RETURN_IF_ERROR(executable->Run(run.arguments(), run.results()));
  return run.Result();
}

bool Overlap(const Slice& a, const Slice& b) {
  return a.allocation == b.allocation && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

// Whether the launches share no bytes but those of inputs.
bool MayRunSideBySide(const LoweredProgram& lowered, const Launch& a, const Launch& b) {
  auto is_input = [&](const Launch& launch, size_t arg) {
    const auto& params = lowered.KernelOf(launch).kernel.params;
    return arg < params.size() && params[kernel::ParamId(arg)].role == kernel::Param::Role::kInput;
  };
  for (size_t i = 0; i < a.args.size(); ++i) {
    for (size_t j = 0; j < b.args.size(); ++j) {
      if (Overlap(a.args[i], b.args[j]) && !(is_input(a, i) && is_input(b, j))) return false;
    }
  }
  return true;
}

// Checks the waves of a list of steps, and reverses each.
void CheckAndReverse(const LoweredProgram& lowered, const Waves& waves, Steps& steps) {
  for (size_t s = 0; s < steps.size(); ++s) {
    program::ForEachList(steps[s],
                         [&](Steps& inner, bool) { CheckAndReverse(lowered, waves, inner); });
    const auto* first = std::get_if<Launch>(&steps[s].what);
    if (!first || waves.begun_by[first->id] < 0) continue;
    const Wave& wave = waves.waves[static_cast<size_t>(waves.begun_by[first->id])];
    const auto launches = static_cast<size_t>(wave.launches());
    ASSERT_LE(s + launches, steps.size());
    EXPECT_TRUE(std::ranges::is_sorted(wave.ends, std::ranges::less_equal()));
    const std::span<Step> members = std::span(steps).subspan(s, launches);
    for (size_t i = 0; i < launches; ++i) {
      for (size_t j = 0; j < i; ++j) {
        EXPECT_TRUE(MayRunSideBySide(lowered, std::get<Launch>(members[i].what),
                                     std::get<Launch>(members[j].what)));
      }
    }
    std::ranges::reverse(members);
    s += launches - 1;
  }
}

TEST(Waves, RandomProgramsComputeTheSameInAnyOrderOfEachWave) {
  const target::Target target = target::HostCpu();
  const std::unique_ptr<const Backend> backend = BackendFor(target);
  target::Cpu eager = target.cpu;
  eager.task_microseconds = 0;
  eager.l2_bytes = int64_t{1} << 40;
  const testing::Seeds seeds = testing::RandomSeeds(60);
  size_t waves_found = 0, most_launches = 0;
  for (int seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    auto module = seed % 3 == 0   ? testing::ControlFodder(random())
                  : seed % 3 == 1 ? testing::RandomModule(random(), {.max_elements = 500})
                                  : testing::RandomRowsModule(random());
    const std::vector<Literal> arguments = testing::RandomArguments(*module, random());
    auto lowered = LowerOpByOp(std::move(module), *backend);
    ASSERT_TRUE(lowered.ok()) << seed << ": " << lowered.status().ToString();
    auto expected = RunProgram(*lowered, *backend, arguments);
    ASSERT_TRUE(expected.ok()) << seed << ": " << expected.status().ToString();
    const int64_t kernels = program::CountKernels(lowered->program.steps);
    const Waves waves = FindWaves(*lowered, eager, 4);
    EXPECT_EQ(program::CountKernels(lowered->program.steps), kernels);
    EXPECT_TRUE(CheckWritten(*lowered).ok()) << seed;
    if (waves.waves.empty()) continue;
    waves_found += waves.waves.size();
    for (const Wave& wave : waves.waves) {
      most_launches = std::max(most_launches, static_cast<size_t>(wave.launches()));
    }
    CheckAndReverse(*lowered, waves, lowered->program.steps);
    EXPECT_TRUE(CheckWritten(*lowered).ok()) << seed;
    auto actual = RunProgram(*std::move(lowered), *backend, arguments);
    ASSERT_TRUE(actual.ok()) << seed << ": " << actual.status().ToString();
    EXPECT_EQ(testing::BitDifference(*expected, *actual), "") << seed;
  }
  EXPECT_GT(waves_found, static_cast<size_t>(seeds.count));
  EXPECT_GT(most_launches, 3u);
}

}  // namespace
}  // namespace kiln::compiler

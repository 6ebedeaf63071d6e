// Programs as data: what tells them apart, what is compared when they are loaded, and what is done
// once then.

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/strings.h"
#include "device/cpu/device.h"
#include "device/cpu/link.h"
#include "device/reference/device.h"
#include "frame/frame.h"
#include "interp/evaluator.h"
#include "ir/text.h"
#include "program/steps.h"
#include "support/compiled.h"
#include "support/gpu.h"
#include "support/hlo.h"
#include "support/labels.h"

namespace kiln {
namespace {

using program::Allocation;
using program::Artefact;
using program::Steps;

std::string AddOf(std::string_view constant, std::string_view name = "m") {
  return Cat("HloModule ", name, "\nENTRY e { x = f32[3] parameter(0)\n  c = f32[3] constant(",
             constant, ")\n  ROOT s = f32[3] add(x, c) }");
}

Artefact Compile(const std::string& text, const target::Target& target = target::HostCpu()) {
  auto artefact = compiler::Compile(ir::ParseOrDie(text), target, {});
  EXPECT_TRUE(artefact.ok()) << artefact.status().ToString();
  return artefact.ok() ? *std::move(artefact) : Artefact();
}

class Loads : public ::testing::Test {
 protected:
  // Loads, and tells what is wrong.
  std::string Load(runtime::Device& device, Artefact artefact) {
    auto loaded = device.Load(std::move(artefact));
    return loaded.ok() ? "" : loaded.status().ToString();
  }

  runtime::Allocator allocator_;
  runtime::ThreadPool pool_{1};
  device::CpuDevice cpu_{"CPU:0", allocator_, pool_};
  device::ReferenceDevice reference_{"REFERENCE:0", allocator_};
};

TEST(ProgramId, IsOneForOneProgram) {
  const Artefact once = Compile(AddOf("{1, 2, 3}")), again = Compile(AddOf("{1, 2, 3}"));
  EXPECT_EQ(once.program.id.size(), 16u);
  EXPECT_EQ(once.program.id, again.program.id);
  EXPECT_EQ(once.code, again.code);
}

TEST(ProgramId, TellsProgramsApart) {
  std::set<std::string> ids;
  for (const char* constant : {"{1, 2, 3}", "{1, 2, 4}", "{0, 2, 3}", "{-0, 2, 3}"}) {
    ids.insert(Compile(AddOf(constant)).program.id);
  }
  ids.insert(Compile(AddOf("{1, 2, 3}", "other")).program.id);
  ids.insert(Compile(AddOf("{1, 2, 3}"), target::HostCpuWithVectors(16)).program.id);
  ids.insert(Compile(AddOf("{1, 2, 3}"), target::NvidiaGpu(80).value()).program.id);
  ids.insert(Compile(AddOf("{1, 2, 3}"), target::NvidiaGpu(90).value()).program.id);
  EXPECT_EQ(ids.size(), 8u);
}

// The same steps over the same memory, and other orders of the same steps.
TEST(ProgramId, GoesByTheSteps) {
  std::set<std::string> ids;
  for (const char* body : {R"(a = f32[8] sort(x), dimensions={0}, to_apply=less
  ROOT r = f32[8] sort(a), dimensions={0}, to_apply=more)",
                           R"(a = f32[8] sort(x), dimensions={0}, to_apply=more
  ROOT r = f32[8] sort(a), dimensions={0}, to_apply=less)"}) {
    ids.insert(Compile(Cat(R"(HloModule m
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT }
more { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=GT }
ENTRY e { x = f32[8] parameter(0)
  )",
                           body, " }"))
                   .program.id);
  }
  EXPECT_EQ(ids.size(), 2u);
}

// Two programs in one binary: with loops that are functions, products that are packed once,
// kernels of several modules.
TEST(ProgramSymbols, OfTwoProgramsDoNotMeet) {
  auto text = [](int n) {
    return Cat(R"(HloModule m
plus { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
body { t = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[8] get-tuple-element(t), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[8] add(x, x)
  ROOT r = (s32[], f32[8]) tuple(j, y) }
condition { t = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant()",
               n, R"()
  ROOT l = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[8] parameter(0)
  m = f32[64,256] parameter(1)
  v = f32[] constant(0.5)
  w = f32[256,256] broadcast(v), dimensions={}
  zero = s32[] constant(0)
  z = f32[] constant(0)
  t = (s32[], f32[8]) tuple(zero, x)
  l = (s32[], f32[8]) while(t), condition=condition, body=body
  y = f32[8] get-tuple-element(l), index=1
  d = f32[64,256] dot(m, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[64,256] exponential(d)
  s = f32[64] reduce(e, z), dimensions={1}, to_apply=plus
  ROOT r = (f32[8], f32[64,256], f32[64]) tuple(y, e, s) })");
  };
  for (auto optimization : {codegen::Optimization::kAuto, codegen::Optimization::kQuick}) {
    compiler::Options options;
    options.threads = 3;
    options.optimization = optimization;
    std::vector<std::string> objects;
    std::vector<Artefact> programs;
    for (int n : {3, 4}) {
      auto artefact = compiler::Compile(ir::ParseOrDie(text(n)), target::HostCpu(), options);
      ASSERT_TRUE(artefact.ok()) << artefact.status().ToString();
      objects.insert(objects.end(), artefact->code.begin(), artefact->code.end());
      programs.push_back(*std::move(artefact));
    }
    auto linked = device::Link(objects);
    ASSERT_TRUE(linked.ok()) << linked.status().ToString();
    for (const Artefact& p : programs) {
      auto entry = (*linked)->Find(EntrySymbol(p.program));
      EXPECT_TRUE(entry.ok()) << entry.status().ToString();
    }
  }
}

TEST_F(Loads, CompareTheFramesVersion) {
  Artefact artefact = Compile(AddOf("{1, 2, 3}"));
  EXPECT_EQ(Load(cpu_, artefact), "");
  ++artefact.program.frame_version;
  EXPECT_EQ(Load(cpu_, artefact),
            Cat("FAILED_PRECONDITION: 'm' does not load on CPU:0: its code is for version ",
                KILN_FRAME_VERSION + 1, " of the library's frame, and this is version ",
                KILN_FRAME_VERSION));
}

TEST_F(Loads, CompareTheTarget) {
  const std::string text = AddOf("{1, 2, 3}");
  // What has less of what this machine has runs.
  EXPECT_EQ(Load(cpu_, Compile(text, target::HostCpuWithVectors(16))), "");
  Artefact artefact = Compile(text);
  const size_t at = artefact.program.target.find("features=");
  artefact.program.target.insert(at + std::strlen("features="), "amx-future,");
  EXPECT_EQ(Load(cpu_, artefact),
            Cat("FAILED_PRECONDITION: 'm' does not load on CPU:0: it was compiled for a CPU with "
                "amx-future, which this machine lacks: it has ",
                Join(target::HostCpu().cpu.features, ", ")));
  const Artefact gpu = Compile(text, target::NvidiaGpu(80).value());
  EXPECT_NE(Load(cpu_, gpu).find("it was compiled for gpu sm_80"), std::string::npos);
  EXPECT_NE(Load(reference_, gpu).find("and the device is reference"), std::string::npos);
  EXPECT_NE(Load(cpu_, Compile(text, target::Reference())).find("compiled for reference"),
            std::string::npos);
  EXPECT_NE(Load(cpu_, Artefact()).find("does not load on CPU:0"), std::string::npos);
  if (testing::IsTestOfCuda()) return;
  device::GpuDevice& emulated = testing::SharedGpu(80);
  EXPECT_EQ(Load(emulated, Compile(text, emulated.target())), "");
  EXPECT_NE(Load(emulated, gpu), "");
  EXPECT_NE(Load(emulated, Compile(text)), "");
  // Code for an older GPU, or for one of another size, runs; code for a newer one does not.
  EXPECT_EQ(Load(emulated, Compile(text, target::EmulatedGpu(75).value())), "");
  target::Target other = emulated.target();
  other.gpu.multiprocessors = 7;
  EXPECT_EQ(Load(emulated, Compile(text, other)), "");
  const std::string refused = Load(emulated, Compile(text, target::EmulatedGpu(90).value()));
  EXPECT_NE(refused.find("it was compiled for gpu sm_90 "), std::string::npos) << refused;
  EXPECT_NE(refused.find("and the device is gpu sm_80 "), std::string::npos) << refused;
  artefact = Compile(text, emulated.target());
  artefact.program.kernels.begin()->grids.at(0).shared_bytes = 200 << 10;
  EXPECT_NE(Load(emulated, artefact).find("204800 bytes of shared memory"), std::string::npos);
}

// REFERENCE gets text: constants keep every bit, whether they are in the text or beside it.
TEST_F(Loads, ReferenceHasConstantsBitByBit) {
  for (int64_t n : {3, 1000}) {
    Literal constant(Shape(ElementType::kF32, {n}));
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t bits = 0x7f800001u + static_cast<uint32_t>(i) * 0x00a1b2c3u;
      std::memcpy(constant.data() + 4 * i, &bits, 4);
    }
    ir::Module module("bits");
    ir::Computation* entry = module.AddComputation("e");
    entry->set_root(entry->Create({.opcode = Opcode::kConstant,
                                   .shape = constant.shape(),
                                   .literal = std::make_shared<const Literal>(constant)}));
    module.set_entry(entry);
    auto artefact = compiler::Compile(module.Clone(), target::Reference(), {});
    ASSERT_TRUE(artefact.ok()) << artefact.status().ToString();
    EXPECT_EQ(artefact->program.constants.size(), n > 64 ? 1u : 0u);
    auto loaded = reference_.Load(*artefact);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    EXPECT_EQ((*loaded)->constant_bytes(), 4 * n);
    std::vector<std::byte> out(static_cast<size_t>(4 * n));
    void* result = out.data();
    ASSERT_TRUE((*loaded)->Run({}, {&result, 1}).ok());
    EXPECT_EQ(std::memcmp(out.data(), constant.data(), out.size()), 0) << n;
  }
}

TEST_F(Loads, ReferenceRefusesConstantsThatAreNotItsText) {
  std::string numbers;
  for (int i = 0; i < 100; ++i) numbers += Cat(i > 0 ? "," : "", i);
  Artefact artefact =
      Compile(Cat("HloModule m\nENTRY e { ROOT c = f32[100] constant({", numbers, "}) }"),
              target::Reference());
  ASSERT_EQ(artefact.program.constants.size(), 1u);
  EXPECT_EQ(Load(reference_, artefact), "");
  Artefact other = artefact;
  other.program.constants[0] = std::make_shared<const Literal>(Shape(ElementType::kF32, {101}));
  EXPECT_NE(Load(reference_, other).find("a constant of f32[101]"), std::string::npos);
  other.program.constants.clear();
  EXPECT_NE(Load(reference_, other).find("{...}"), std::string::npos);
  other.code.clear();
  EXPECT_NE(Load(reference_, other).find("0 pieces of code"), std::string::npos);
}

// The first bytes of an allocation.
program::Slice SliceOf(int allocation, int64_t bytes = 1) {
  return {program::AllocationId(allocation), 0, bytes};
}

// What is done once when a program is loaded is done on every device: here a copy of a constant,
// which goes when nothing else reads it.
TEST(Prologue, RunsOnAGpuOnce) {
  device::GpuDevice& device = testing::SharedGpu(80);
  Artefact artefact;
  program::Program& p = artefact.program;
  p.name = "prologue";
  p.target = device.target().ToString();
  p.frame_version = KILN_FRAME_VERSION;
  p.signature.results = {Shape(ElementType::kS32, {16})};
  p.signature.result_shape = p.signature.results[0];
  p.signature.aliases = {-1};
  p.signature.must_alias = {false};
  Literal numbers(Shape(ElementType::kS32, {16}));
  for (int32_t i = 0; i < 16; ++i) numbers.values<int32_t>()[static_cast<size_t>(i)] = 3 * i;
  p.allocations = {{Allocation::Kind::kResult, 0, 64},
                   {Allocation::Kind::kConstant, 0, 64},
                   {Allocation::Kind::kConstant, 1, 64}};
  p.constants = {std::make_shared<const Literal>(numbers), nullptr};
  p.prologue = {{program::Copy{SliceOf(1, 64), SliceOf(2, 64)}}};
  p.steps = {{program::Copy{SliceOf(2, 64), SliceOf(0, 64)}}};
  const int64_t before = device.Memory().live_bytes;
  auto loaded = testing::LoadOnGpu(std::make_shared<const Artefact>(std::move(artefact)), device);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(device.Memory().live_bytes - before, 64);
  for (int run = 0; run < 3; ++run) {
    auto result = testing::RunOnGpu(*loaded, {});
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    EXPECT_TRUE(*result == numbers);
  }
}

TEST(Steps, AreWalkedInOrder) {
  const program::Step copy{program::Copy{SliceOf(0), SliceOf(1)}},
      call{program::HostCall{"f", {SliceOf(2)}, "", program::LaunchId(0)}};
  program::While loop;
  loop.condition = {copy};
  loop.predicate = SliceOf(3);
  program::Conditional conditional;
  conditional.index = SliceOf(4);
  conditional.branches = {{call}, {copy, call}};
  loop.body = {{conditional}};
  const Steps steps = {{loop}, call};
  std::string order;
  program::ForEachStep(steps, [&](const program::Step& step, bool in_loop) {
    order += Cat(step.what.index(), in_loop ? "+" : "", "(");
    program::ForEachSlice(step, [&](const program::Slice& s) { order += Cat(s.allocation); });
    order += ") ";
  });
  EXPECT_EQ(order, "3(3) 1+(01) 4+(4) 2+(2) 1+(01) 2+(2) 2(2) ");
  EXPECT_EQ(program::CountKernels(steps), 5);
  program::Program p;
  p.allocations.resize(6);
  p.steps = steps;
  EXPECT_EQ(program::HostCallSteps(p).size(), 3u);
  EXPECT_EQ(program::AllocationUses(p), (std::vector<bool>{true, true, true, true, true, false}));
}

KILN_LABEL(text, "Loads.ReferenceRefusesConstantsThatAreNotItsText");

}  // namespace
}  // namespace kiln

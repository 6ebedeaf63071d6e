// Gemms on GPUs: PTX that the assembler takes, and results on the emulated GPU that are the
// evaluator's, for every architecture that has a way of its own.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <set>
#include <utility>

#include "base/strings.h"
#include "codegen/codegen.h"
#include "compiler/gpu/grids.h"
#include "interp/interpreter.h"
#include "kernel/schedule/gpu/gemm.h"
#include "support/gpu.h"
#include "support/hlo.h"
#include "support/labels.h"
#include "support/literal.h"
#include "support/ptxas.h"

namespace kiln {
namespace {

using kernel::GpuSchedule;
using kernel::GpuUnit;
using testing::Difference;
using Form = GpuSchedule::Form;

constexpr int kArchitectures[] = {75, 80, 90};

// A gemm, with dimensions in the order in which the text has them.
struct Dot {
  std::string x, y, out;  // types and dimensions
  std::string contracting_x = "1", contracting_y = "0", batch_x, batch_y;
};

std::string Attributes(const Dot& d) {
  std::string text = Cat("lhs_contracting_dims={", d.contracting_x, "}, rhs_contracting_dims={",
                         d.contracting_y, "}");
  if (!d.batch_x.empty()) {
    text += Cat(", lhs_batch_dims={", d.batch_x, "}, rhs_batch_dims={", d.batch_y, "}");
  }
  return text;
}

std::string TextOf(const Dot& d) {
  return Cat("HloModule m\nENTRY e { x = ", d.x, " parameter(0)\n  y = ", d.y,
             " parameter(1)\n  ROOT d = ", d.out, " dot(x, y), ", Attributes(d), " }");
}

// The longest sum of the module's gemms.
int64_t LongestSum(const ir::Module& module) {
  int64_t longest = 1;
  for (const auto& c : module.computations()) {
    for (ir::Instruction* i : c->instructions()) {
      if (i->opcode() != Opcode::kDot) continue;
      int64_t k = 1;
      for (int64_t d : i->attributes().IntsOf(Attr::kLhsContractingDims)) {
        k *= i->operand(0)->shape().dim(d);
      }
      longest = std::max(longest, k);
    }
  }
  return longest;
}

bool Has(const ir::Module& module, ElementType type) {
  for (const auto& c : module.computations()) {
    for (ir::Instruction* i : c->instructions()) {
      if (i->shape().is_array() && i->shape().type() == type) return true;
    }
  }
  return false;
}

struct Seen {
  std::set<Form> forms;
  std::set<GpuUnit> units;
  bool copies = false, chunks = false, groups = false;

  void See(const codegen::LoweredProgram& lowered) {
    for (const kernel::ScheduledKernel& k : lowered.kernels) {
      const GpuSchedule& schedule = *kernel::GridsOf(k.schedule);
      forms.insert(schedule.form);
      if (schedule.form != Form::kGemm) continue;
      units.insert(schedule.gemm.unit);
      copies |= schedule.gemm.x.copied && schedule.gemm.y.copied;
      chunks |= schedule.chunks > 1;
      groups |= schedule.gemm.group > 1;
    }
  }
};

// Sums in f32 are off by what rounding of each step may leave, of factors below 2 (integers below
// 10).
void Compare(const ir::Module& module, const Literal& expected, const Literal& actual,
             const program::Program& program) {
  const double factor = Has(module, ElementType::kS8) ? 20 : 4;
  double absolute = 0x1p-24 * factor * static_cast<double>(LongestSum(module));
  double relative = 1e-6;
  if (Has(module, ElementType::kF16)) relative = 0x1p-10;
  if (Has(module, ElementType::kBF16)) relative = 0x1p-7;
  if (Has(module, ElementType::kF64)) relative = absolute = 1e-12;
  EXPECT_EQ(Difference(expected, actual, relative, absolute), "") << program.ToString();
}

Seen Check(const std::string& text, bool op_by_op = true) {
  SCOPED_TRACE(text);
  Seen seen;
  auto module = ir::ParseOrDie(text);
  std::vector<Literal> arguments = testing::RandomArguments(*module, 7);
  auto expected = interp::Evaluate(*module, arguments);
  EXPECT_TRUE(expected.ok()) << expected.status().ToString();
  for (bool fuse : {true, false}) {
    if (!fuse && !op_by_op) continue;
    EXPECT_EQ(testing::AssembleProgram(*module, fuse), "");
    for (int sm : kArchitectures) {
      SCOPED_TRACE(Cat("sm_", sm));
      auto loaded = testing::LoadOnGpu(*module, fuse, sm);
      EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
      if (!loaded.ok()) return seen;
      seen.See(*loaded->lowered);
      // The second run is that of a graph, with other addresses.
      for (int run = 0; run < 2; ++run) {
        auto actual = testing::RunOnGpu(*loaded, arguments);
        EXPECT_TRUE(actual.ok()) << actual.status().ToString() << "\n"
                                 << loaded->artefact->program.ToString();
        if (!actual.ok()) return seen;
        Compare(*module, *expected, *actual, loaded->artefact->program);
      }
    }
  }
  return seen;
}

std::string Square(std::string_view type, int64_t rows, int64_t columns) {
  return Cat(type, "[", rows, ",", columns, "]");
}

TEST(GpuGemms, EveryType) {
  struct Types {
    const char *x, *y, *out;
  };
  std::set<GpuUnit> units;
  for (Types t : {Types{"f32", "f32", "f32"},
                  {"f64", "f64", "f64"},
                  {"s8", "s8", "s8"},
                  {"s8", "s8", "s32"},
                  {"s16", "s16", "s16"},
                  {"s32", "s32", "s32"},
                  {"s64", "s64", "s64"},
                  {"u8", "u8", "u8"},
                  {"u8", "u8", "u32"},
                  {"u16", "u16", "u16"},
                  {"u32", "u32", "u32"},
                  {"u64", "u64", "u64"},
                  {"f16", "f16", "f16"},
                  {"f16", "f16", "f32"},
                  {"bf16", "bf16", "bf16"},
                  {"bf16", "bf16", "f32"}}) {
    Dot d{Square(t.x, 40, 72), Square(t.y, 72, 48), Square(t.out, 40, 48)};
    Seen seen = Check(TextOf(d), false);
    EXPECT_TRUE(seen.forms.contains(Form::kGemm)) << t.x;
    units.insert(seen.units.begin(), seen.units.end());
  }
  EXPECT_EQ(units, (std::set<GpuUnit>{GpuUnit::kFma, GpuUnit::kF16K8, GpuUnit::kF16, GpuUnit::kBF16,
                                      GpuUnit::kS8, GpuUnit::kF64}));
}

// Every way in which operands may lie, in the graph and in memory.
void CheckLayouts(const char* type, int64_t m, int64_t n, int64_t k) {
  const std::string out = std::string(type) == "s8" ? "s32" : type;
  for (int layout = 0; layout < 4; ++layout) {
    const bool turned_x = layout & 1, turned_y = layout & 2;
    Dot d{turned_x ? Square(type, k, m) : Square(type, m, k),
          turned_y ? Square(type, n, k) : Square(type, k, n), Square(out, m, n)};
    d.contracting_x = turned_x ? "0" : "1";
    d.contracting_y = turned_y ? "1" : "0";
    Check(TextOf(d), false);
    Dot same{Cat(Square(type, m, k), turned_x ? "{0,1}" : "{1,0}"),
             Cat(Square(type, k, n), turned_y ? "{0,1}" : "{1,0}"),
             Cat(Square(out, m, n), layout == 3 ? "{0,1}" : "{1,0}")};
    Check(TextOf(same), false);
  }
}

TEST(GpuGemms, EveryLayout) {
  for (const char* type : {"f32", "bf16"}) CheckLayouts(type, 33, 50, 35);
}

TEST(SlowGpuGemms, EveryLayoutOfTypes) {
  for (const char* type : {"f32", "bf16", "f16", "s8", "f64"}) {
    CheckLayouts(type, 64, 96, 80);
    CheckLayouts(type, 33, 50, 35);
  }
}

TEST(GpuGemms, OddShapes) {
  for (const char* type : {"f32", "bf16"}) {
    for (auto [m, n, k] :
         {std::array{1, 3, 17}, std::array{17, 100, 129}, std::array{129, 17, 3},
          std::array{100, 129, 1}, std::array{3, 129, 100}, std::array{8, 8, 4},
          std::array{129, 129, 129}, std::array{130, 66, 34}, std::array{9, 300, 5}}) {
      Check(TextOf({Square(type, m, k), Square(type, k, n), Square(type, m, n)}), false);
    }
  }
  for (auto [m, n, k] : {std::array{0, 3, 17}, std::array{16, 16, 0}, std::array{16, 0, 16}}) {
    Check(TextOf({Square("f32", m, k), Square("f32", k, n), Square("f32", m, n)}));
  }
}

TEST(GpuGemms, BatchesAndSeveralDimensions) {
  for (const char* t : {"f32", "bf16", "s8"}) {
    auto array = [&](std::string_view dims) { return Cat(t, "[", dims, "]"); };
    auto out = [&](std::string_view dims) {
      return Cat(std::string(t) == "s8" ? "s32" : t, "[", dims, "]");
    };
    Check(TextOf({array("3,20,36"), array("3,36,24"), out("3,20,24"), "2", "1", "0", "0"}), false);
    Check(TextOf({array("2,3,20,8"), array("3,2,24,8"), out("2,3,20,24"), "3", "3", "0,1", "1,0"}),
          false);
    // Attention's: batch dimensions apart.
    Check(TextOf({array("2,20,3,8"), array("2,28,3,8"), out("2,3,20,28"), "3", "3", "0,2", "0,2"}),
          false);
    // Several rows, columns and contracting dimensions, which lie in order or do not.
    Check(TextOf({array("4,5,6,8"), array("6,8,3,7"), out("4,5,3,7"), "2,3", "0,1", "", ""}),
          false);
    Check(TextOf({array("6,4,8,5"), array("8,3,6,7"), out("4,5,3,7"), "0,2", "2,0", "", ""}),
          false);
    Check(TextOf({array("6,4,16"), array("8,6,4"), out("4,16,8,4"), "0", "1", "", ""}), false);
  }
}

// What is made of sums: everything that the kernel does later.
TEST(GpuGemms, Epilogues) {
  for (const char* t : {"f32", "bf16"}) {
    const std::string type(t);
    std::string text = R"(HloModule m
add { a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT c = T[] add(a, b) }
ENTRY e { x = T[100,64] parameter(0)
  w = T[64,96] parameter(1)
  b = T[96] parameter(2)
  r = T[100,96] parameter(3)
  z = T[100,30] parameter(4)
  d = T[100,96] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bb = T[100,96] broadcast(b), dimensions={1}
  s = T[100,96] add(d, bb)
  t = T[100,96] tanh(s)
  zero = T[] constant(0)
  rows = T[100] reduce(z, zero), dimensions={1}, to_apply=add
  rb = T[100,96] broadcast(rows), dimensions={0}
  u = T[100,96] multiply(t, r)
  v = T[100,96] add(u, rb)
  p = pred[100,96] compare(v, r), direction=GT
  q = T[100,96] select(p, v, s)
  ROOT c = f16[100,96] convert(q) })";
    for (size_t at = text.find("T["); at != std::string::npos; at = text.find("T[", at + 1)) {
      text.replace(at, 1, type);
    }
    Seen seen = Check(text);
    EXPECT_TRUE(seen.forms.contains(Form::kGemm));
  }
  Check(R"(HloModule m
ENTRY e { x = f32[40,64] parameter(0)
  w = f32[64,48] parameter(1)
  d = f32[40,48] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[48,40] transpose(d), dimensions={1,0}
  r = f32[48,8,5] reshape(t)
  ROOT n = f32[48,8,5] negate(r) })");
}

// What factors are made of, where the graph says that it is one kernel.
TEST(GpuGemms, Prologues) {
  Seen seen = Check(R"(HloModule m
f { x = s8[60,72] parameter(0)
  s = f32[60] parameter(1)
  w = f32[72,48] parameter(2)
  g = f32[72,48] parameter(3)
  xf = f32[60,72] convert(x)
  sb = f32[60,72] broadcast(s), dimensions={0}
  a = f32[60,72] multiply(xf, sb)
  p = pred[72,48] compare(w, g), direction=GT
  c = f32[72,48] select(p, w, g)
  ROOT d = f32[60,48] dot(a, c), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
ENTRY e { x = s8[60,72] parameter(0)
  s = f32[60] parameter(1)
  w = f32[72,48] parameter(2)
  g = f32[72,48] parameter(3)
  ROOT r = f32[60,48] fusion(x, s, w, g), kind=kOutput, calls=f })");
  EXPECT_TRUE(seen.forms.contains(Form::kGemm));
  // Numbers that become bf16 just before.
  seen = Check(R"(HloModule m
f { x = f32[60,72] parameter(0)
  w = bf16[48,72] parameter(1)
  g = bf16[48,72] parameter(2)
  a = bf16[60,72] convert(x)
  c = bf16[48,72] maximum(w, g)
  ROOT d = f32[60,48] dot(a, c), lhs_contracting_dims={1}, rhs_contracting_dims={1} }
ENTRY e { x = f32[60,72] parameter(0)
  w = bf16[48,72] parameter(1)
  g = bf16[48,72] parameter(2)
  ROOT r = f32[60,48] fusion(x, w, g), kind=kOutput, calls=f })");
  EXPECT_TRUE(seen.units.contains(GpuUnit::kBF16));
  // Transposes, slices and reversed dimensions, which the index has.
  Check(R"(HloModule m
ENTRY e { x = f32[80,64] parameter(0)
  w = f32[50,72] parameter(1)
  t = f32[64,80] transpose(x), dimensions={1,0}
  s = f32[60,72] slice(t), slice={[3:63], [8:80]}
  v = f32[50,72] reverse(w), dimensions={1}
  ROOT d = f32[60,50] dot(s, v), lhs_contracting_dims={1}, rhs_contracting_dims={1} })");
}

// Few tiles and much to add up: blocks share it, and a second launch adds up what they leave.
TEST(GpuGemms, Chunks) {
  for (const char* t : {"f32", "bf16"}) {
    Seen seen = Check(Cat("HloModule m\nENTRY e { x = ", t, "[24,8200] parameter(0)\n  w = ", t,
                          "[8200,36] parameter(1)\n  b = ", t, "[24,36] parameter(2)\n  d = ", t,
                          "[24,36] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n",
                          "  ROOT r = ", t, "[24,36] add(d, b) }"),
                      false);
    EXPECT_TRUE(seen.chunks);
  }
}

// With many rows and columns of tiles, blocks that run side by side are neighbours.
TEST(GpuGemms, Groups) {
  Seen seen =
      Check(TextOf({Square("f32", 290, 9), Square("f32", 9, 600), Square("f32", 290, 600)}), false);
  EXPECT_TRUE(seen.groups);
}

// The same sums in the same order, on whatever is there.
TEST(GpuGemms, RepeatedRunsHaveTheSameBits) {
  auto module = ir::ParseOrDie(
      TextOf({Square("f32", 24, 8200), Square("f32", 8200, 36), Square("f32", 24, 36)}));
  std::vector<Literal> arguments = testing::RandomArguments(*module, 3);
  auto loaded = testing::LoadOnGpu(*module, true);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  auto first = testing::RunOnGpu(*loaded, arguments),
       second = testing::RunOnGpu(*loaded, arguments);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(Difference(*first, *second, 0, 0), "");
}

TEST(GpuGemms, ScheduleFollowsProblemAndTarget) {
  auto schedule = [](const Dot& d, int sm) {
    auto module = ir::ParseOrDie(TextOf(d));
    auto compiled = testing::CompileWithKernels(module->Clone(), target::NvidiaGpu(sm).value());
    EXPECT_TRUE(compiled.ok());
    return std::get<GpuSchedule>(compiled->lowered.kernels.at(0).schedule);
  };
  Dot large{"bf16[4096,4096]", "bf16[4096,4096]", "bf16[4096,4096]"};
  GpuSchedule s = schedule(large, 80);
  EXPECT_EQ(s.gemm.unit, GpuUnit::kBF16);
  EXPECT_GE(s.gemm.m * s.gemm.n, 128 * 128);
  EXPECT_TRUE(s.gemm.x.copied && s.gemm.y.copied);
  EXPECT_EQ(s.gemm.x.lanes * ByteWidth(s.gemm.x.type), 16);
  EXPECT_GE(s.gemm.stages, 3);
  EXPECT_GT(s.gemm.group, 1);
  EXPECT_EQ(s.chunks, 1);
  // sm_75 has no tensor cores for bf16, and no asynchronous copies.
  s = schedule(large, 75);
  EXPECT_EQ(s.gemm.unit, GpuUnit::kFma);
  EXPECT_FALSE(s.gemm.x.copied);
  EXPECT_LE(s.launches[0].shared_bytes, 64 << 10);
  // f64 has fast tensor cores in data centres only.
  Dot doubles{"f64[512,512]", "f64[512,512]", "f64[512,512]"};
  EXPECT_EQ(schedule(doubles, 80).gemm.unit, GpuUnit::kF64);
  EXPECT_EQ(schedule(doubles, 86).gemm.unit, GpuUnit::kFma);
  // f32 keeps its bits.
  EXPECT_EQ(schedule({"f32[512,512]", "f32[512,512]", "f32[512,512]"}, 90).gemm.unit,
            GpuUnit::kFma);
  EXPECT_GT(schedule({"f32[64,65536]", "f32[65536,64]", "f32[64,64]"}, 80).chunks, 1);
}

// The module's gemm with a schedule of the test's own, assembled and run. The plan has scratch for
// its own schedule, so that a block has all of k.
void CheckSchedule(const ir::Module& module, GpuSchedule schedule, int sm, double bound) {
  schedule.launches[0].blocks /= std::exchange(schedule.chunks, 1);
  schedule.launches.resize(1);
  schedule.scratch_bytes = 0;
  SCOPED_TRACE(Cat("sm_", sm, ": ", schedule.ToString()));
  std::vector<Literal> arguments = testing::RandomArguments(module, 5);
  auto expected = interp::Evaluate(module, arguments);
  ASSERT_TRUE(expected.ok());
  device::GpuDevice& device = testing::SharedGpu(sm);
  for (const target::Target& target : {device.target(), target::NvidiaGpu(sm).value()}) {
    auto compiled = testing::CompileWithKernels(module.Clone(), target);
    ASSERT_TRUE(compiled.ok());
    compiled->lowered.kernels.at(0).schedule = schedule;
    compiler::DescribeGrids(compiled->lowered);
    auto code = codegen::GenerateGpu(compiled->lowered, target, {});
    ASSERT_TRUE(code.ok()) << code.status().ToString();
    if (!target.gpu.emulated) EXPECT_EQ(testing::Assemble(sm, (*code)[0]), "");
    if (target.ToString() != device.target().ToString()) continue;
    testing::Loaded loaded;
    loaded.artefact = std::make_shared<const program::Artefact>(
        program::Artefact{compiled->lowered.program, *code});
    auto executable = testing::LoadOnGpu(loaded.artefact);
    ASSERT_TRUE(executable.ok()) << executable.status().ToString();
    loaded.executable = std::move(*executable);
    auto actual = testing::RunOnGpu(loaded, arguments);
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    EXPECT_EQ(Difference(*expected, *actual, 0, bound), "");
  }
}

std::vector<GpuSchedule> SchedulesOf(const ir::Module& module, int sm, bool tf32 = false) {
  target::Target target = target::NvidiaGpu(sm).value();
  auto compiled = testing::CompileWithKernels(module.Clone(), target);
  EXPECT_TRUE(compiled.ok());
  target.gpu.tf32 = tf32;
  return kernel::GpuGemmSchedules(compiled->lowered.kernels.at(0).kernel, target.gpu);
}

Dot DotOfLayout(const char* type, const char* out, int layout, int64_t m, int64_t n, int64_t k) {
  const bool turned_x = layout & 1, turned_y = layout & 2;
  Dot d{turned_x ? Square(type, k, m) : Square(type, m, k),
        turned_y ? Square(type, n, k) : Square(type, k, n), Square(out, m, n)};
  d.contracting_x = turned_x ? "0" : "1";
  d.contracting_y = turned_y ? "1" : "0";
  return d;
}

// Tiles of all sizes, most of which these problems would not get.
TEST(SlowGpuGemms, EveryTile) {
  struct Way {
    const char *type, *out;
    int sm;
  };
  for (Way w : {Way{"f32", "f32", 75},
                {"f32", "f32", 80},
                {"f64", "f64", 75},
                {"f64", "f64", 90},
                {"f16", "f32", 75},
                {"bf16", "f32", 80},
                {"bf16", "f32", 90},
                {"s8", "s32", 80}}) {
    SCOPED_TRACE(w.type);
    for (int layout : {0, 3}) {
      auto module = ir::ParseOrDie(TextOf(DotOfLayout(w.type, w.out, layout, 136, 264, 72)));
      std::vector<GpuSchedule> schedules = SchedulesOf(*module, w.sm);
      EXPECT_GE(schedules.size(), 2u);
      for (const GpuSchedule& s : schedules) CheckSchedule(*module, s, w.sm, 1e-4);
    }
  }
}

TEST(GpuGemms, TilesOfAllLayoutsWithEdges) {
  for (int layout = 0; layout < 4; ++layout) {
    auto module = ir::ParseOrDie(TextOf(DotOfLayout("bf16", "f32", layout, 130, 300, 70)));
    CheckSchedule(*module, SchedulesOf(*module, 80).front(), 80, 1e-4);
    auto floats = ir::ParseOrDie(TextOf(DotOfLayout("f32", "f32", layout, 130, 131, 37)));
    for (GpuSchedule& s : SchedulesOf(*floats, 80)) {
      if (s.gemm.m == 128 && s.gemm.n == 128) CheckSchedule(*floats, s, 80, 1e-4);
    }
  }
}

// More tiles than blocks may be.
TEST(GpuGemms, BlocksTakeSeveralTiles) {
  for (const char* type : {"f32", "bf16"}) {
    auto module = ir::ParseOrDie(TextOf(DotOfLayout(type, "f32", 0, 136, 264, 72)));
    GpuSchedule s = SchedulesOf(*module, 80).back();
    ASSERT_GT(s.launches[0].blocks, 3);
    s.launches[0].blocks = 3;
    CheckSchedule(*module, s, 80, 1e-4);
  }
}

// Gemms of f32 by tf32, for those who allow it: factors are rounded to 11 bits.
TEST(GpuGemms, TF32WhereAllowed) {
  for (int layout = 0; layout < 4; ++layout) {
    auto check = [&](int64_t m, int64_t n, int64_t k, size_t most) {
      auto module = ir::ParseOrDie(TextOf(DotOfLayout("f32", "f32", layout, m, n, k)));
      std::vector<GpuSchedule> schedules = SchedulesOf(*module, 80, /*tf32=*/true);
      ASSERT_GE(schedules.size(), 2u);
      for (size_t i = 0; i < std::min(most, schedules.size()); ++i) {
        EXPECT_EQ(schedules[i].gemm.unit, GpuUnit::kTF32);
        CheckSchedule(*module, schedules[i], 80, 0x1p-11 * 4 * std::sqrt(static_cast<double>(k)));
      }
    };
    check(136, 264, 72, 1);
    check(33, 50, 35, 4);
  }
}

// Sums of products that are no dots, in the type that they are written in.
TEST(GpuGemms, SumsOfProducts) {
  for (const char* t : {"f32", "s8", "s16"}) {
    std::string text = R"(HloModule m
add { a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT c = T[] add(a, b) }
ENTRY e { x = T[40,24] parameter(0)
  w = T[48,24] parameter(1)
  xb = T[40,48,24] broadcast(x), dimensions={0,2}
  wb = T[40,48,24] broadcast(w), dimensions={1,2}
  p = T[40,48,24] multiply(xb, wb)
  one = T[] constant(1)
  ROOT r = T[40,48] reduce(p, one), dimensions={2}, to_apply=add })";
    for (size_t at = text.find("T["); at != std::string::npos; at = text.find("T[", at + 1)) {
      text.replace(at, 1, t);
    }
    SCOPED_TRACE(t);
    auto module = ir::ParseOrDie(text);
    std::vector<GpuSchedule> schedules = SchedulesOf(*module, 80);
    ASSERT_FALSE(schedules.empty());
    CheckSchedule(*module, schedules[0], 80, 1e-4);
  }
}

// A slice of a stack of matrices, which a number that is computed picks.
TEST(GpuGemms, SlicesOfStacks) {
  for (const char* t : {"f32", "bf16"}) {
    Seen seen = Check(Cat(
        "HloModule m\nf { w = ", t, "[5,64,48] parameter(0)\n  x = ", t,
        "[40,64] parameter(1)\n  i = s32[] parameter(2)\n", "  z = s32[] constant(0)\n  s = ", t,
        "[1,64,48] dynamic-slice(w, i, z, z), dynamic_slice_sizes={1,64,48}\n", "  r = ", t,
        "[64,48] reshape(s)\n  ROOT d = ", t,
        "[40,48] dot(x, r), lhs_contracting_dims={1}, rhs_contracting_dims={0} }\n",
        "ENTRY e { w = ", t, "[5,64,48] parameter(0)\n  x = ", t,
        "[40,64] parameter(1)\n  i = s32[] parameter(2)\n  ROOT d = ", t,
        "[40,48] fusion(w, x, i), kind=kOutput, calls=f }"));
    EXPECT_TRUE(seen.forms.contains(Form::kGemm));
    EXPECT_TRUE(seen.copies);
  }
}

TEST(SlowGpuGemms, LargeOnesAreEmulatedInTime) {
  for (const char* t : {"f32", "bf16"}) {
    auto module =
        ir::ParseOrDie(TextOf({Square(t, 256, 256), Square(t, 256, 256), Square("f32", 256, 256)}));
    std::vector<Literal> arguments = testing::RandomArguments(*module, 3);
    auto expected = interp::Evaluate(*module, arguments);
    auto loaded = testing::LoadOnGpu(*module, true);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    double least = 1e9;
    for (int run = 0; run < 3; ++run) {
      auto start = std::chrono::steady_clock::now();
      auto actual = testing::RunOnGpu(*loaded, arguments);
      auto end = std::chrono::steady_clock::now();
      ASSERT_TRUE(actual.ok()) << actual.status().ToString();
      Compare(*module, *expected, *actual, loaded->artefact->program);
      least = std::min(least, std::chrono::duration<double>(end - start).count());
    }
    printf("  256 x 256 x 256 of %s: %.1f ms\n", t, least * 1e3);
    EXPECT_LT(least, 0.3);
  }
}

KILN_LABEL(slow, "SlowGpuGemms");

}  // namespace
}  // namespace kiln

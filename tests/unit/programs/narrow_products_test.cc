// Products of bf16 and of bytes, by the instructions that the machine has for them.
#include <gtest/gtest.h>

#include <string>

#include "base/strings.h"
#include "compiler/compiler.h"
#include "interp/interpreter.h"
#include "kernel/contraction.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/literal.h"
#include "target/target.h"

namespace kiln::testing {
namespace {

using kernel::GemmUnit;

const target::Cpu& Machine() {
  static const target::Cpu cpu = target::HostCpu().cpu;
  return cpu;
}

// The unit of the module's products, which have one in common.
GemmUnit UnitOf(const codegen::LoweredProgram& lowered) {
  GemmUnit unit = GemmUnit::kElement;
  for (const kernel::ScheduledKernel& k : lowered.kernels) {
    const auto* gemm = std::get_if<kernel::CpuGemm>(&k.schedule);
    if (gemm) unit = gemm->schedule->unit;
  }
  return unit;
}

// The machine's unit for the types of one that it may not have.
GemmUnit OfMachine(GemmUnit unit) {
  const target::Cpu& cpu = Machine();
  const GemmUnit s16 = StartsWith(cpu.triple, "x86_64") ? GemmUnit::kS16Pair : GemmUnit::kElement;
  switch (unit) {
    case GemmUnit::kBf16Pair:
      return cpu.HasBf16Tiles()     ? GemmUnit::kBf16Tile
             : cpu.MultipliesBf16() ? GemmUnit::kBf16Pair
                                    : GemmUnit::kElement;
    case GemmUnit::kByteQuad:
      return cpu.HasByteTiles()                                 ? GemmUnit::kByteTile
             : cpu.Has("avxvnniint8") && cpu.vector_bytes == 32 ? GemmUnit::kAnyByteQuad
             : cpu.MultipliesBytes()                            ? GemmUnit::kByteQuad
                                                                : s16;
    case GemmUnit::kS16Pair:
      return s16;
    default:
      return unit;
  }
}

// Compares the program with the evaluator's numbers, and its unit with what is expected of a
// machine that has it.
void CheckUnit(const std::string& text, GemmUnit expected, double bound = 1e-5,
               const compiler::Options& options = {}) {
  SCOPED_TRACE(text);
  auto module = ir::ParseOrDie(text);
  const std::vector<Literal> arguments = RandomArguments(*module, 11);
  auto value = interp::Evaluate(*module, arguments);
  ASSERT_TRUE(value.ok()) << value.status().ToString();
  auto actual = RunCompiled(*module, arguments, true);
  ASSERT_TRUE(actual.ok()) << actual.status().ToString();
  EXPECT_EQ(DifferenceOf(*module, *value, *actual, bound), "");
  if (IsTestOfGpu()) return;
  auto compiled = CompileWithKernels(module->Clone(), target::HostCpu(), options);
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  EXPECT_EQ(UnitOf(compiled->lowered), OfMachine(expected));
}

// The text with words replaced by others.
std::string With(std::string text,
                 std::initializer_list<std::pair<std::string_view, std::string_view>> words) {
  for (auto [word, by] : words) {
    for (size_t at; (at = text.find(word)) != std::string::npos;) {
      text.replace(at, word.size(), by);
    }
  }
  return text;
}

std::string Product(std::string_view type, std::string_view sum, int64_t m, int64_t n, int64_t k) {
  return Cat("HloModule product\nENTRY main {\n  x = ", type, "[", m, ",", k,
             "] parameter(0)\n  y = ", type, "[", k, ",", n, "] parameter(1)\n  ROOT d = ", sum,
             "[", m, ",", n,
             "] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n");
}

TEST(NarrowProducts, OfMatrices) {
  for (auto [m, n, k] : {std::tuple(37, 70, 129), {64, 64, 64}, {13, 16, 7}, {200, 100, 300}}) {
    for (const char* sum : {"f32", "bf16"}) {
      CheckUnit(Product("bf16", sum, m, n, k), GemmUnit::kBf16Pair);
    }
    for (const char* sum : {"s32", "s8"}) {
      CheckUnit(Product("s8", sum, m, n, k), GemmUnit::kByteQuad);
    }
    for (const char* sum : {"s32", "s16"}) {
      CheckUnit(Product("s16", sum, m, n, k), GemmUnit::kS16Pair);
    }
    CheckUnit(Product("u16", "u32", m, n, k), GemmUnit::kElement);
    CheckUnit(Product("u8", "u32", m, n, k), GemmUnit::kByteQuad);
    CheckUnit(Product("s4", "s32", m, n, k), GemmUnit::kByteQuad);
    CheckUnit(Product("f8e4m3fn", "f32", m, n, k), GemmUnit::kBf16Pair);
  }
}

TEST(NarrowProducts, OfConstantsInBatchesTransposed) {
  const char* const text = R"(HloModule heads
ENTRY main {
  x = TYPE[2,33,3,20] parameter(0)
  w = TYPE[45,20] parameter(1)
  y = TYPE[2,41,3,20] parameter(2)
  s = SUM[2,3,33,41] dot(x, y), lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={3}
  t = SUM[2,33,3,45] dot(x, w), lhs_contracting_dims={3}, rhs_contracting_dims={1}
  ROOT r = (SUM[2,3,33,41], SUM[2,33,3,45]) tuple(s, t)
}
)";
  for (auto [type, sum, unit] : {std::tuple("bf16", "f32", GemmUnit::kBf16Pair),
                                 {"s8", "s32", GemmUnit::kByteQuad},
                                 {"u8", "u32", GemmUnit::kByteQuad}}) {
    CheckUnit(With(text, {{"TYPE", type}, {"SUM", sum}}), unit);
  }
}

// Factors that are computed where they are packed, and results that are computed with.
TEST(NarrowProducts, WithOperandsAndResultsComputed) {
  const char* const halves = R"(HloModule fused
ENTRY main {
  x = bf16[50,KK] parameter(0)
  w = f32[KK,48] parameter(1)
  bias = f32[48] parameter(2)
  zero = bf16[] constant(0)
  zeros = bf16[50,KK] broadcast(zero), dimensions={}
  a = bf16[50,KK] maximum(x, zeros)
  b = bf16[KK,48] convert(w)
  d = f32[50,48] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  biases = f32[50,48] broadcast(bias), dimensions={1}
  t = f32[50,48] add(d, biases)
  u = f32[50,48] tanh(t)
  ROOT r = bf16[50,48] convert(u)
}
)";
  const char* const bytes = R"(HloModule requantised
ENTRY main {
  x = u8[50,KK] parameter(0)
  w = s8[48,KK] parameter(1)
  scales = f32[48] parameter(2)
  a = s32[50,KK] convert(x)
  b = s32[48,KK] convert(w)
  d = s32[50,48] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  f = f32[50,48] convert(d)
  by = f32[50,48] broadcast(scales), dimensions={1}
  g = f32[50,48] multiply(f, by)
  low = f32[] constant(-128)
  high = f32[] constant(127)
  h = f32[50,48] clamp(low, g, high)
  n = f32[50,48] round-nearest-even(h)
  ROOT r = s8[50,48] convert(n)
}
)";
  for (std::string_view k : {"64", "75"}) {
    CheckUnit(With(halves, {{"KK", k}}), GemmUnit::kBf16Pair, 1e-4);
    CheckUnit(With(bytes, {{"KK", k}}), GemmUnit::kByteQuad);
  }
}

TEST(NarrowProducts, OfOneArrayWithItself) {
  for (std::string_view k : {"64", "75"}) {
    // Words of an array that is read twice are there, or the elements are multiplied one by one.
    const GemmUnit unit = k == "64" ? GemmUnit::kBf16Pair : GemmUnit::kElement;
    CheckUnit(With(R"(HloModule square
ENTRY main {
  x = bf16[40,KK] parameter(0)
  ROOT r = f32[40,40] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}
)",
                   {{"KK", k}}),
              unit);
  }
}

TEST(NarrowProducts, OfWindows) {
  const char* const text = R"(HloModule convolution
ENTRY main {
  x = TYPE[2,9,9,FF] parameter(0)
  w = TYPE[3,3,FF,32] parameter(1)
  ROOT r = SUM[2,9,9,32] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
}
)";
  for (auto [features, words] : {std::pair("16", true), {"3", false}}) {
    for (auto [type, sum, unit] : {std::tuple("bf16", "bf16", GemmUnit::kBf16Pair),
                                   {"s8", "s32", GemmUnit::kByteQuad},
                                   {"s8", "s8", GemmUnit::kByteQuad},
                                   {"u8", "u8", GemmUnit::kByteQuad},
                                   {"s16", "s16", GemmUnit::kS16Pair}}) {
      CheckUnit(With(text, {{"TYPE", type}, {"SUM", sum}, {"FF", features}}),
                words ? unit : GemmUnit::kElement);
    }
  }
}

// What options allow and forbid.
TEST(NarrowProducts, ByOptions) {
  const std::string halves = Product("bf16", "f32", 40, 48, 64);
  const std::string singles = Product("f32", "f32", 40, 48, 64);
  CheckUnit(halves, GemmUnit::kElement, 1e-5, {.keep_subnormals = true});
  CheckUnit(singles, GemmUnit::kElement);
  CheckUnit(singles, GemmUnit::kBf16Pair, 1e-5, {.allow_bf16 = true});
  CheckUnit(R"(HloModule convolution
ENTRY main {
  x = f32[2,9,9,16] parameter(0)
  w = f32[3,3,16,32] parameter(1)
  ROOT r = f32[2,9,9,32] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
}
)",
            GemmUnit::kBf16Pair, 1e-5, {.allow_bf16 = true});
  if (IsTestOfGpu()) return;
  auto module = ir::ParseOrDie(singles);
  const std::vector<Literal> arguments = RandomArguments(*module, 11);
  auto run = [&](const compiler::Options& options) {
    auto compiled = CompileWithKernels(module->Clone(), target::HostCpu(), options);
    EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
    Execution execution(compiled->artefact);
    execution.SetArguments(arguments);
    auto artefact = SavedAndRestored(compiled->artefact);
    EXPECT_TRUE(artefact.ok()) << artefact.status().ToString();
    auto executable = LoadOnPool(*artefact, Pool());
    EXPECT_TRUE(executable.ok()) << executable.status().ToString();
    EXPECT_TRUE((*executable)->Run(execution.arguments(), execution.results()).ok());
    return execution.Result();
  };
  const Literal exact = run({}), rounded = run({.allow_bf16 = true});
  // Factors have eight bits.
  EXPECT_EQ(Difference(exact, rounded, 0.01, 0.2), "");
  const bool rounds = Machine().MultipliesBf16() || Machine().HasBf16Tiles();
  if (rounds) EXPECT_NE(Difference(exact, rounded, 1e-5, 1e-5), "");
}

}  // namespace
}  // namespace kiln::testing

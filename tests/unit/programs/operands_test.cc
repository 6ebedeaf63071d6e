// Gemms whose operands are cut out of larger arrays, scaled by rows or columns, or whose results
// are turned: one kernel, that of a gemm.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/literal.h"

namespace kiln::testing {
namespace {

// Every kernel is a gemm or packs its operands.
bool IsGemmAlone(const codegen::LoweredProgram& lowered) {
  return std::ranges::all_of(lowered.kernels, [](const kernel::ScheduledKernel& k) {
    return std::holds_alternative<kernel::CpuGemm>(k.schedule);
  });
}

void CheckOperands(const std::string& text, std::optional<bool> alone = true,
                   double tolerance = 1e-4) {
  SCOPED_TRACE(text);
  auto module = ir::ParseOrDie(text);
  std::vector<Literal> arguments = RandomArguments(*module, 17);
  auto expected = interp::Evaluate(*module, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (int bytes : {64, 32, 16}) {
    auto loaded = Load(*module, true, bytes);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    if (bytes == 64 && alone && !testing::IsTestOfGpu()) {
      EXPECT_EQ(IsGemmAlone(*loaded->lowered), *alone) << loaded->artefact->program.ToString();
    }
    Execution run(*loaded->artefact);
    run.SetArguments(arguments);
    ASSERT_TRUE(loaded->executable->Run(run.arguments(), run.results()).ok());
    EXPECT_EQ(Difference(*expected, run.Result(), tolerance, tolerance), "") << bytes;
  }
}

// The scores of an attention, of one array with queries, keys and values.
TEST(Operands, AreCutOutOfOneArray) {
  for (int64_t heads : {1, 3}) {
    for (int64_t length : {5, 32, 70}) {
      for (int64_t depth : {8, 33}) {
        std::string one = Cat("f32[2,", length, ",1,", heads, ",", depth, "]");
        std::string part = Cat("f32[2,", length, ",", heads, ",", depth, "]");
        auto cut = [&](int k) {
          return Cat(one, " slice(qkv), slice={[0:2], [0:", length, "], [", k, ":", k + 1,
                     "], [0:", heads, "], [0:", depth, "]}");
        };
        CheckOperands(Cat("HloModule scores\nENTRY main {\n  qkv = f32[2,", length, ",3,", heads,
                          ",", depth, "] parameter(0)\n  q1 = ", cut(0), "\n  q = ", part,
                          " reshape(q1)\n  k1 = ", cut(1), "\n  k = ", part,
                          " reshape(k1)\n  ROOT s = f32[2,", heads, ",", length, ",", length,
                          "] dot(q, k), lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, "
                          "lhs_contracting_dims={3}, rhs_contracting_dims={3}\n}\n"));
      }
    }
  }
}

TEST(Operands, AreCutOutOfMatrices) {
  for (const char* type : {"f32", "f64", "bf16", "f16", "s32", "s8", "u8"}) {
    double tolerance = std::string(type).ends_with("16") ? 0.1 : 1e-4;
    for (int64_t m : {1, 3, 40, 200}) {
      for (int64_t n : {9, 64, 300}) {
        CheckOperands(
            Cat("HloModule cut\nENTRY main {\n  x = ", type, "[", m + 3, ",50] parameter(0)\n",
                "  y = ", type, "[60,", n + 5, "] parameter(1)\n  xs = ", type, "[", m,
                ",24] slice(x), slice={[2:", m + 2, "], [7:31]}\n  ys = ", type, "[24,", n,
                "] slice(y), slice={[5:53:2], [3:", n + 3, "]}\n  ROOT d = ", type, "[", m, ",", n,
                "] dot(xs, ys), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"),
            m > 1 ? std::optional(true) : std::nullopt, tolerance);
      }
    }
  }
}

TEST(Operands, ArePackedFromWhereTheyAre) {
  // A that is read across, B that is contiguous along k, and with what follows.
  for (const char* tail : {"  ROOT r = f32[65,512] negate(d)\n", ""}) {
    std::string text =
        Cat(R"(HloModule packed
ENTRY main {
  x = f32[50,70] parameter(0)
  y = f32[530,64] parameter(1)
  xs = f32[48,65] slice(x), slice={[1:49], [4:69]}
  ys = f32[512,48] slice(y), slice={[9:521], [11:59]}
  )",
            *tail ? "" : "ROOT ",
            "d = f32[65,512] dot(xs, ys), lhs_contracting_dims={0}, rhs_contracting_dims={1}\n",
            tail, "}\n");
    CheckOperands(text);
  }
}

// Rows that are cut shorter and then put together have no stride: they are made first.
TEST(Operands, WithoutStridesAreMadeFirst) {
  CheckOperands(R"(HloModule apart
ENTRY main {
  x = f32[40,6,9] parameter(0)
  w = f32[42,30] parameter(1)
  s = f32[40,6,7] slice(x), slice={[0:40], [0:6], [1:8]}
  r = f32[40,42] reshape(s)
  d = f32[40,30] dot(r, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = f32[40,30] tanh(d)
}
)",
                false);
}

TEST(Operands, ResultsAreTurned) {
  for (int64_t depth : {16, 23}) {
    CheckOperands(
        Cat("HloModule heads\nENTRY main {\n  p = f32[2,3,40,40] parameter(0)\n  v = f32[2,40,3,",
            depth, "] parameter(1)\n  o = f32[2,3,40,", depth,
            "] dot(p, v), lhs_batch_dims={0,1}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, "
            "rhs_contracting_dims={1}\n  t = f32[2,40,3,",
            depth, "] transpose(o), dimensions={0,2,1,3}\n  ROOT r = f32[2,40,", 3 * depth,
            "] reshape(t)\n}\n"));
  }
}

// A gemm beside its transpose: two kernels, the second of which reads tiles across.
TEST(Operands, NoTransposeStands) {
  auto module = ir::ParseOrDie(R"(HloModule symmetric
ENTRY main {
  x = f32[96,20] parameter(0)
  w = f32[20,96] parameter(1)
  d = f32[96,96] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[96,96] transpose(d), dimensions={1,0}
  ROOT r = f32[96,96] add(d, t)
}
)");
  auto loaded = Load(*module, true);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(loaded->artefact->program.steps.size(), 2u) << loaded->artefact->program.ToString();
  testing::Check(ir::ToHloText(*module), 1e-4, 1e-4);
}

// Weights of few bits with a scale for each row or column, or for both and the batch.
struct Scaled {
  std::string type, memory;
  int64_t batch, m, n, k;
  bool left, across;       // which operand, and whether it is contiguous along its other dimension
  std::string dimensions;  // of the operand, that the scale has
};

std::string Text(const Scaled& c) {
  int64_t rows = c.left ? c.m : c.k, columns = c.left ? c.k : c.n;
  if (c.across) std::swap(rows, columns);
  std::vector<int64_t> dims = {c.batch, rows, columns}, scale;
  for (char d : c.dimensions) {
    if (d != ',') scale.push_back(dims[static_cast<size_t>(d - '0')]);
  }
  std::string full = Cat("[", Join(dims, ","), "]");
  std::string other =
      Cat(c.type, "[", c.batch, ",", c.left ? c.k : c.m, ",", c.left ? c.n : c.k, "]");
  int along_left = c.left && c.across ? 1 : 2, along_right = !c.left && c.across ? 2 : 1;
  return Cat(
      "HloModule scaled\nENTRY main {\n  x = ", c.memory, full, " parameter(0)\n  y = ", other,
      " parameter(1)\n  s = ", c.type, "[", Join(scale, ","), "] parameter(2)\n  t = ", c.type,
      full, c.memory == c.type ? " negate(x)\n" : " convert(x)\n", "  sb = ", c.type, full,
      " broadcast(s), dimensions={", c.dimensions, "}\n  v = ", c.type, full,
      " multiply(t, sb)\n  ROOT d = ", c.type, "[", c.batch, ",", c.m, ",", c.n, "] dot(",
      c.left ? "v, y" : "y, v", "), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={",
      along_left, "}, rhs_contracting_dims={", along_right, "}\n}\n");
}

TEST(Operands, AreScaledByRowsAndColumns) {
  for (const char* memory : {"s8", "bf16", "f32"}) {
    for (const char* dimensions : {"1", "2", "1,2", "0", "0,2", "0,1"}) {
      const bool few = std::string(memory) != "s8" || dimensions[0] == '0';
      for (int64_t n : few ? std::vector<int64_t>{37} : std::vector<int64_t>{16, 37, 100}) {
        for (bool across : {false, true}) {
          // Few rows, which read the right operand once; panels that are packed.
          CheckOperands(Text({"f32", memory, 2, 1, n, 70, false, across, dimensions}), true, 1e-3);
          if (!few) {
            CheckOperands(Text({"f32", memory, 2, 8, n, 70, false, across, dimensions}),
                          std::nullopt, 1e-3);
          }
          CheckOperands(Text({"f32", memory, 2, 16, n, 40, false, across, dimensions}),
                        std::nullopt, 1e-3);
        }
      }
      // The left operand.
      CheckOperands(Text({"f32", memory, 2, 40, 512, 33, true, true, dimensions}), true, 1e-3);
    }
  }
}

}  // namespace
}  // namespace kiln::testing

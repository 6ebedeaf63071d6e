// Gemms that compute an operand as they read it.
#include <gtest/gtest.h>

#include <string>

#include "base/strings.h"
#include "compiler/compiler.h"
#include "interp/interpreter.h"
#include "kernel/contraction.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/literal.h"

namespace kiln::testing {
namespace {

struct Case {
  std::string type, memory;  // of the gemm, and of what the prologue reads
  int64_t m, n, k, batch;
  bool left;        // whose operand it is
  bool across;      // that operand is contiguous along its other dimension
  std::string ops;  // from x, of `memory`, to v, of `type`; S is x's shape but for its type
};

std::string Text(const Case& c) {
  auto shape = [&](int64_t rows, int64_t columns) {
    return Cat("[", c.batch, ",", rows, ",", columns, "]");
  };
  int64_t rows = c.left ? c.m : c.k, columns = c.left ? c.k : c.n;
  if (c.across) std::swap(rows, columns);
  std::string computed = shape(rows, columns);
  std::string other = c.left ? shape(c.k, c.n) : shape(c.m, c.k);
  std::string ops = c.ops;
  for (size_t at; (at = ops.find("S")) != std::string::npos;) ops.replace(at, 1, computed);
  int64_t along_left = c.left && c.across ? 1 : 2, along_right = !c.left && c.across ? 2 : 1;
  return Cat("HloModule gemm\nENTRY main {\n  x = ", c.memory, computed,
             " parameter(0)\n  y = ", c.type, other, " parameter(1)\n  s = f32[] parameter(2)\n",
             ops, "  ROOT d = ", c.type, shape(c.m, c.n), " dot(", c.left ? "v, y" : "y, v",
             "), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={", along_left,
             "}, rhs_contracting_dims={", along_right, "}\n}\n");
}

constexpr char kRelu[] = R"(  zero = f32[] constant(0)
  zeros = f32S broadcast(zero), dimensions={}
  v = f32S maximum(x, zeros)
)";
constexpr char kScale[] = R"(  t = f32S convert(x)
  ss = f32S broadcast(s), dimensions={}
  v = f32S multiply(t, ss)
)";
constexpr char kSigmoid[] = R"(  v = f32S logistic(x)
)";
constexpr char kHalf[] = R"(  half = bf16[] constant(0.3)
  halves = bf16S broadcast(half), dimensions={}
  t = bf16S multiply(x, halves)
  v = f32S convert(t)
)";

// Whether the gemm of the module's one kernel has a prologue.
bool HasPrologue(const codegen::LoweredProgram& lowered) {
  for (const kernel::ScheduledKernel& k : lowered.kernels) {
    const auto* gemm = std::get_if<kernel::CpuGemm>(&k.schedule);
    if (!gemm) return false;
    if (gemm->contraction->a_prologue || gemm->contraction->b_prologue) return true;
  }
  return false;
}

// Against the evaluator's numbers; whether the gemm has a prologue.
bool CheckText(const std::string& text) {
  SCOPED_TRACE(text);
  bool fused = false;
  auto module = ir::ParseOrDie(text);
  std::vector<Literal> arguments = RandomArguments(*module, 11);
  auto expected = interp::Evaluate(*module, arguments);
  EXPECT_TRUE(expected.ok()) << expected.status().ToString();
  if (!expected.ok()) return false;
  for (int bytes : {64, 32, 16}) {
    auto loaded = Load(*module, true, bytes);
    EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
    if (!loaded.ok()) return false;
    if (bytes == 64 && !IsTestOfGpu()) fused = HasPrologue(*loaded->lowered);
    Execution run(*loaded->artefact);
    run.SetArguments(arguments);
    EXPECT_TRUE(loaded->executable->Run(run.arguments(), run.results()).ok());
    EXPECT_EQ(Difference(*expected, run.Result(), 1e-4, 1e-4), "") << bytes;
  }
  return fused;
}

void CheckCase(const Case& c, bool fused) {
  const std::string text = Text(c);
  const bool has_prologue = CheckText(text);
  if (!IsTestOfGpu()) EXPECT_EQ(has_prologue, fused) << text;
}

TEST(Prologues, OfFewRows) {
  for (int64_t m : {1, 3, 8}) {
    for (int64_t n : {16, 70, 256}) {
      CheckCase({"f32", "f32", m, n, 40, 1, false, false, kRelu}, true);
    }
  }
  CheckCase({"f32", "s8", 4, 100, 64, 1, false, false, kScale}, true);
  CheckCase({"f32", "bf16", 4, 100, 64, 1, false, false, kHalf}, true);
}

TEST(Prologues, OfInnerProducts) {
  // B is contiguous along k, which is no multiple of a vector; what is 1 at 0 must not count.
  for (int64_t k : {64, 75, 130}) {
    CheckCase({"f32", "f32", 1, 33, k, 1, false, true, kSigmoid}, true);
    CheckCase({"f32", "f32", 3, 50, k, 2, false, true, kRelu}, true);
    CheckCase({"f32", "s8", 2, 33, k, 1, false, true, kScale}, true);
  }
}

// Sums over k of arrays of the operand's shape, k x n or n x k, and of one of its rows' or its
// columns' shape.
std::string OfArrays(int64_t n, int64_t k, bool across, bool by_row) {
  const int64_t rows = across ? n : k, columns = across ? k : n;
  const std::string all = Cat("f32[", rows, ",", columns, "]");
  const int sums = across ? 1 : 0;
  return Cat("HloModule arrays\nadd { p = f32[] parameter(0)\n  q = f32[] parameter(1)\n",
             "  ROOT t = f32[] add(p, q) }\nENTRY main {\n  x = ", all,
             " parameter(0)\n  y = ", all, " parameter(1)\n  r = f32[", by_row ? rows : columns,
             "] parameter(2)\n  a = f32[", k, "] parameter(3)\n  rs = ", all,
             " broadcast(r), dimensions={", by_row ? 0 : 1, "}\n  as = ", all,
             " broadcast(a), dimensions={", sums, "}\n  d = ", all, " subtract(x, rs)\n  e = ", all,
             " multiply(d, y)\n  v = ", all,
             " multiply(as, e)\n  zero = f32[] constant(0)\n  ROOT g = f32[", n,
             "] reduce(v, zero), dimensions={", sums, "}, to_apply=add\n}\n");
}

TEST(Prologues, OfSeveralArrays) {
  int fused = 0, fused_across = 0;
  for (int64_t n : {16, 70, 128, 131, 768}) {
    for (int64_t k : {40, 128, 768}) {
      for (bool by_row : {false, true}) {
        fused += CheckText(OfArrays(n, k, false, by_row));
        fused_across += CheckText(OfArrays(n, k, true, by_row));
      }
    }
  }
  if (IsTestOfGpu()) return;
  EXPECT_GT(fused, 0);
  EXPECT_GT(fused_across, 0);
}

TEST(Prologues, OfPackedOperands) {
  // A that is read across is packed, in a kernel of its own, with the scalar.
  CheckCase({"f32", "f32", 64, 512, 48, 1, true, true, kSigmoid}, true);
  CheckCase({"f32", "s8", 65, 512, 48, 1, true, true, kScale}, true);
  CheckCase({"f32", "bf16", 40, 512, 33, 2, true, true, kHalf}, true);
}

TEST(Prologues, ManyReadsAreNotWorthIt) {
  CheckCase({"f32", "f32", 256, 512, 64, 1, true, false, kSigmoid}, false);
  CheckCase({"f32", "f32", 256, 64, 64, 1, false, false, kSigmoid}, false);
}

// Kernels with an epilogue share the code of their gemm if they have the same prologue.
// Weights of few bits whose groups along the sum have a scale each, as JAX writes them.
TEST(Prologues, OfScaledGroups) {
  for (const char* type : {"s8", "s4", "u4"}) {
    for (bool across : {false, true}) {
      for (int64_t m : {1, 3}) {
        auto shape = [&](std::vector<int64_t> sum, int64_t n) {
          across ? sum.insert(sum.begin(), n) : sum.insert(sum.end(), n);
          return Cat("[", Join(sum, ","), "]");
        };
        const std::string whole = shape({96}, 40), groups = shape({3, 32}, 40);
        EXPECT_TRUE(CheckText(
            Cat("HloModule groups\nENTRY main {\n  x = f32[", m, ",96] parameter(0)\n  q = ", type,
                whole, " parameter(1)\n  s = f32", shape({3}, 40), " parameter(2)\n  f = f32",
                whole, " convert(q)\n  g = f32", groups, " reshape(f)\n  t = f32", groups,
                " broadcast(s), dimensions={0,", across ? 1 : 2, "}\n  v = f32", groups,
                " multiply(g, t)\n  w = f32", whole, " reshape(v)\n  ROOT d = f32[", m,
                ",40] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={", across ? 1 : 0,
                "}\n}\n")))
            << type << across << m;
      }
    }
  }
}

// Two weights in each byte, with a scale for each group along the sum: by a bitcast-convert, and by
// shifts, put side by side.
TEST(Prologues, OfHalvesOfBytes) {
  struct Form {
    const char *byte, *number, *ops;  // from `q`, of bytes B, to `p`, of numbers P
  };
  constexpr Form kForms[] = {{"u8", "s4", "  p = s4P bitcast-convert(q)\n"},
                             {"s8", "u4", "  p = u4P bitcast-convert(q)\n"},
                             {"u8", "s8", R"(  fifteen = u8[] constant(15)
  four = u8[] constant(4)
  eight = s8[] constant(8)
  fifteens = u8B broadcast(fifteen), dimensions={}
  fours = u8B broadcast(four), dimensions={}
  eights = s8B broadcast(eight), dimensions={}
  l = u8B and(q, fifteens)
  h = u8B shift-right-logical(q, fours)
  ls = s8B convert(l)
  hs = s8B convert(h)
  lc = s8B subtract(ls, eights)
  hc = s8B subtract(hs, eights)
  lr = s8O reshape(lc)
  hr = s8O reshape(hc)
  p = s8P concatenate(lr, hr), dimensions={2}
)"},
                             {"s8", "s8", R"(  four = s8[] constant(4)
  fours = s8B broadcast(four), dimensions={}
  up = s8B shift-left(q, fours)
  l = s8B shift-right-arithmetic(up, fours)
  h = s8B shift-right-arithmetic(q, fours)
  lr = s8O reshape(l)
  hr = s8O reshape(h)
  p = s8P concatenate(lr, hr), dimensions={2}
)"}};
  for (const Form& form : kForms) {
    for (bool across : {false, true}) {
      for (int64_t m : {1, 3, 9, 40}) {
        auto shape = [&](std::vector<int64_t> sum, int64_t n) {
          across ? sum.insert(sum.begin(), n) : sum.insert(sum.end(), n);
          return Cat("[", Join(sum, ","), "]");
        };
        // Several tiles of rows meet a panel that one of them packs; few panels would be packed by
        // each.
        const int64_t n = m > 3 ? 1024 : 48;
        const std::string whole = shape({96}, n), groups = shape({3, 32}, n);
        const std::string pairs = across ? Cat(n, ",48") : Cat("96,", n / 2);
        std::string ops = form.ops;
        for (auto [letter, dims] :
             {std::pair("B", Cat("[", pairs, "]")), std::pair("O", Cat("[", pairs, ",1]")),
              std::pair("P", Cat("[", pairs, ",2]"))}) {
          for (size_t at; (at = ops.find(letter)) != std::string::npos;) ops.replace(at, 1, dims);
        }
        const bool fused = CheckText(Cat(
            "HloModule halves\nENTRY main {\n  x = f32[", m, ",96] parameter(0)\n  q = ", form.byte,
            "[", pairs, "] parameter(1)\n  s = f32", shape({3}, n), " parameter(2)\n", ops,
            "  w = ", form.number, whole, " reshape(p)\n  f = f32", whole, " convert(w)\n  g = f32",
            groups, " reshape(f)\n  t = f32", groups, " broadcast(s), dimensions={0,",
            across ? 1 : 2, "}\n  v = f32", groups, " multiply(g, t)\n  r = f32", whole,
            " reshape(v)\n  ROOT d = f32[", m, ",", n,
            "] dot(x, r), lhs_contracting_dims={1}, rhs_contracting_dims={", across ? 1 : 0,
            "}\n}\n"));
        if (!IsTestOfGpu()) EXPECT_TRUE(fused) << form.ops << across << m;
      }
    }
  }
}

// Sums of several blocks, by products of two widths in a program, which may share their code.
// Of whole numbers, whose sums are exact in any order.
TEST(Prologues, OfHalvesOfBytesInBlocks) {
  constexpr int64_t kSum = 4608;
  for (bool across : {false, true}) {
    std::string text = Cat("HloModule halves\nENTRY main {\n  i = s8[40,", kSum,
                           "] parameter(0)\n  x = f32[40,", kSum, "] convert(i)\n");
    std::vector<std::string> results;
    for (int64_t n : {96, 192}) {
      const std::string dims = across ? Cat(n, ",", kSum) : Cat(kSum, ",", n);
      const std::string bytes = across ? Cat(n, ",", kSum / 2) : Cat(kSum, ",", n / 2);
      text += Cat("  q", n, " = u8[", bytes, "] parameter(", results.size() + 1, ")\n  p", n,
                  " = s4[", bytes, ",2] bitcast-convert(q", n, ")\n  w", n, " = s4[", dims,
                  "] reshape(p", n, ")\n  f", n, " = f32[", dims, "] convert(w", n, ")\n  d", n,
                  " = f32[40,", n, "] dot(x, f", n,
                  "), lhs_contracting_dims={1}, rhs_contracting_dims={", across ? 1 : 0, "}\n");
      results.push_back(Cat("d", n));
    }
    CheckText(
        Cat(text, "  ROOT t = (f32[40,96], f32[40,192]) tuple(", Join(results, ", "), ")\n}\n"));
  }
}

TEST(Prologues, WithEpilogues) {
  const char text[] = R"(HloModule both
ENTRY main {
  x = f32[64,96] parameter(0)
  a = f32[4,64] parameter(1)
  s = f32[] parameter(2)
  t = f32[] parameter(3)
  ss = f32[64,96] broadcast(s), dimensions={}
  xs = f32[64,96] multiply(x, ss)
  d = f32[4,96] dot(a, xs), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[4,96] tanh(d)
  tt = f32[64,96] broadcast(t), dimensions={}
  xt = f32[64,96] multiply(x, tt)
  f = f32[4,96] dot(a, xt), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g = f32[4,96] negate(f)
  zero = f32[] constant(0)
  zeros = f32[64,96] broadcast(zero), dimensions={}
  xr = f32[64,96] maximum(x, zeros)
  h = f32[4,96] dot(a, xr), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  i = f32[4,96] abs(h)
  ROOT r = (f32[4,96], f32[4,96], f32[4,96]) tuple(e, g, i)
}
)";
  testing::Check(text, 1e-4, 1e-4);
}

}  // namespace
}  // namespace kiln::testing

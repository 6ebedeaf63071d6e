// Programs for GPUs: PTX that the assembler takes, and results on the emulated GPU that are the
// evaluator's.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "support/gpu.h"
#include "support/hlo.h"
#include "support/labels.h"
#include "support/literal.h"
#include "support/ptxas.h"

namespace kiln {
namespace {

using Form = kernel::GpuSchedule::Form;

std::set<Form> CheckOnGpu(const std::string& text) {
  std::set<Form> forms;
  for (const kernel::GpuSchedule& schedule : testing::CheckOnGpu(text)) forms.insert(schedule.form);
  return forms;
}

constexpr char kReducers[] = R"(HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b) }
)";

TEST(GpuPrograms, ElementwiseTransposeAndReduce) {
  std::set<Form> forms = CheckOnGpu(Cat(kReducers, R"(
ENTRY e { x = f32[100,784] parameter(0)
  y = f32[100,784] parameter(1)
  b = f32[784] parameter(2)
  bb = f32[100,784] broadcast(b), dimensions={1}
  s = f32[100,784] add(x, bb)
  t = f32[100,784] tanh(s)
  l = f32[100,784] logistic(y)
  m = f32[100,784] multiply(t, l)
  n = f32[100,784] negate(y)
  tr = f32[784,100] transpose(n), dimensions={1,0}
  zero = f32[] constant(0)
  ninf = f32[] constant(-inf)
  rows = f32[100] reduce(x, ninf), dimensions={1}, to_apply=max
  columns = f32[784] reduce(y, zero), dimensions={0}, to_apply=add
  all = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add
  ROOT r = (f32[784,100], f32[100], f32[784], f32[], f32[100,784]) tuple(tr, rows, columns, all, m) })"));
  EXPECT_TRUE(forms.contains(Form::kTranspose));
  EXPECT_TRUE(forms.contains(Form::kTeams));
  printf("  %s\n", testing::HasPtxas() ? "assembled by ptxas" : "no ptxas is installed");
}

TEST(GpuPrograms, SoftmaxRegressionWithoutItsDots) {
  CheckOnGpu(Cat(kReducers, R"(
ENTRY e { lo = f32[100,10] parameter(0)
  l = f32[100,10] parameter(1)
  zero = f32[] constant(0)
  ninf = f32[] constant(-inf)
  mx = f32[100] reduce(lo, ninf), dimensions={1}, to_apply=max
  mxb = f32[100,10] broadcast(mx), dimensions={0}
  sh = f32[100,10] subtract(lo, mxb)
  e = f32[100,10] exponential(sh)
  se = f32[100] reduce(e, zero), dimensions={1}, to_apply=add
  lse = f32[100] log(se)
  lseb = f32[100,10] broadcast(lse), dimensions={0}
  lp = f32[100,10] subtract(sh, lseb)
  ll = f32[100,10] multiply(l, lp)
  tot = f32[] reduce(ll, zero), dimensions={0,1}, to_apply=add
  seb = f32[100,10] broadcast(se), dimensions={0}
  p = f32[100,10] divide(e, seb)
  g = f32[100,10] subtract(p, l)
  gb = f32[10] reduce(g, zero), dimensions={0}, to_apply=add
  ROOT r = (f32[], f32[10], f32[100,10]) tuple(tot, gb, g) })"));
}

TEST(GpuPrograms, TypesGuardsAndGeneralReducers) {
  CheckOnGpu(R"(HloModule m
argmax { v = f64[] parameter(0)
  i = s64[] parameter(1)
  w = f64[] parameter(2)
  j = s64[] parameter(3)
  p = pred[] compare(v, w), direction=GE
  x = f64[] select(p, v, w)
  y = s64[] select(p, i, j)
  ROOT t = (f64[], s64[]) tuple(x, y) }
or { a = pred[] parameter(0)
  b = pred[] parameter(1)
  ROOT c = pred[] or(a, b) }
ENTRY e { x = f64[9,41] parameter(0)
  u = u8[5,33] parameter(1)
  c = pred[7,300] parameter(2)
  i = s64[9,41] iota(), iota_dimension=1
  ninf = f64[] constant(-inf)
  zero = s64[] constant(0)
  no = pred[] constant(false)
  v = u8[] constant(3)
  a = (f64[9], s64[9]) reduce(x, i, ninf, zero), dimensions={1}, to_apply=argmax
  o = pred[7] reduce(c, no), dimensions={1}, to_apply=or
  p = u8[8,70] pad(u, v), padding=1_2x3_2_1
  ROOT r = ((f64[9], s64[9]), pred[7], u8[8,70]) tuple(a, o, p) })");
}

// Arithmetic, conversions from and to, a transpose and reductions of every element type.
TEST(GpuPrograms, EveryType) {
  for (const char* name :
       {"s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "bf16", "f64"}) {
    SCOPED_TRACE(name);
    const std::string t(name);
    const bool is_float = t.find('f') != std::string::npos;
    auto array = [&](std::string_view type) { return Cat(type, "[40,70]"); };
    std::string text =
        Cat("HloModule m\nadd { a = ", t, "[] parameter(0)\n  b = ", t,
            "[] parameter(1)\n  ROOT c = ", t, "[] add(a, b) }\nmax { a = ", t,
            "[] parameter(0)\n  b = ", t, "[] parameter(1)\n  ROOT c = ", t,
            "[] maximum(a, b) }\nENTRY e { x = ", array(t), " parameter(0)\n  y = ", array(t),
            " parameter(1)\n  f = ", array("f32"), " parameter(2)\n  d = ", array("f64"),
            " parameter(3)\n  i = ", array("s32"), " parameter(4)\n  l = ", array("s64"),
            " parameter(5)\n  one = ", t, "[] constant(1)\n");
    std::string results;
    int count = 0;
    auto add = [&](const std::string& line) {
      text += Cat("  r", count, " = ", line, "\n");
      results += Cat(count > 0 ? ", r" : "r", count);
      ++count;
    };
    std::vector<std::string_view> ops = {"add", "subtract", "multiply", "maximum", "divide"};
    if (!is_float) {
      for (std::string_view op : {"remainder", "xor", "power", "shift-left",
                                  "shift-right-arithmetic", "shift-right-logical"}) {
        ops.push_back(op);
      }
    }
    for (std::string_view op : ops) add(Cat(array(t), " ", op, "(x, y)"));
    std::vector<std::string_view> unary = {"abs", "negate", "sign"};
    if (is_float) {
      unary.insert(unary.end(), {"exponential", "tanh", "floor", "round-nearest-even"});
    } else {
      unary.insert(unary.end(), {"popcnt", "count-leading-zeros", "not"});
    }
    for (std::string_view op : unary) add(Cat(array(t), " ", op, "(x)"));
    for (const char* from : {"f", "d", "i", "l"}) add(Cat(array(t), " convert(", from, ")"));
    for (const char* to : {"f32", "f64", "s32", "s64", "u8", "pred", "bf16"}) {
      if (t != to) add(Cat(array(to), " convert(x)"));
    }
    add("pred[40,70] compare(x, y), direction=LT");
    add(Cat(t, "[70,40] transpose(y), dimensions={1,0}"));
    add(Cat(t, "[40] reduce(x, one), dimensions={1}, to_apply=add"));
    add(Cat(t, "[70] reduce(x, one), dimensions={0}, to_apply=max"));
    add(Cat(t, "[40,70] iota(), iota_dimension=1"));
    CheckOnGpu(Cat(text, "  ROOT t = tuple(", results, ")\n}\n"));
  }
}

// A fold of a thousand arrays: frames of more than 64 KiB.
TEST(GpuPrograms, LargeFramesHaveRoom) {
  constexpr int kArrays = 1000;
  std::string fold = "f {\n", sums, arrays, types, zeros;
  for (int i = 0; i < kArrays; ++i) {
    const std::string_view comma = i == 0 ? "" : ", ";
    sums += Cat("  s", i, " = f32[] add(p", i, ", p", kArrays + i, ")\n");
    types += Cat(comma, "s", i);
    arrays += Cat(comma, "x", i);
    zeros += ", z";
  }
  for (int i = 0; i < 2 * kArrays; ++i) fold += Cat("  p", i, " = f32[] parameter(", i, ")\n");
  std::string text =
      Cat(fold, sums, "  ROOT t = tuple(", types, ") }\nENTRY e {\n  z = f32[] constant(0)\n");
  for (int i = 0; i < kArrays; ++i) text += Cat("  x", i, " = f32[8,4] parameter(", i, ")\n");
  auto module = ir::ParseOrDie(
      Cat(text, "  ROOT r = reduce(", arrays, zeros, "), dimensions={1}, to_apply=f }\n"));
  std::vector<Literal> arguments = testing::RandomArguments(*module, 1);
  auto expected = interp::Evaluate(*module, arguments);
  ASSERT_TRUE(expected.ok());
  auto loaded = testing::LoadOnGpu(*module, true);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  auto actual = testing::RunOnGpu(*loaded, arguments);
  ASSERT_TRUE(actual.ok()) << actual.status().ToString();
  EXPECT_EQ(testing::DifferenceOf(*module, *expected, *actual, 1e-5), "");
}

KILN_LABEL(gpu_smoke, "GpuPrograms.SoftmaxRegressionWithoutItsDots");

}  // namespace
}  // namespace kiln

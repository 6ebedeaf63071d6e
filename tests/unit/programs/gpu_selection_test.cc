// Reductions that keep one of two elements, as argmax does: they may be split.

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "base/strings.h"
#include "kernel/combiner.h"
#include "kernel/selection.h"
#include "support/gpu.h"
#include "support/hlo.h"

namespace kiln {
namespace {

using Form = kernel::GpuSchedule::Form;

// The first of the largest, and NaN before all numbers.
std::string ArgMax(std::string_view type) {
  std::string t(type);
  return Cat("pick { v0 = ", t, "[] parameter(0)\n  i0 = s32[] parameter(1)\n  v1 = ", t,
             "[] parameter(2)\n  i1 = s32[] parameter(3)\n",
             R"(  gt = pred[] compare(v0, v1), direction=GT
  nan = pred[] compare(v0, v0), direction=NE
  wins = pred[] or(gt, nan)
  eq = pred[] compare(v0, v1), direction=EQ
  both = pred[] compare(v1, v1), direction=NE
  nans = pred[] and(nan, both)
  ties = pred[] or(eq, nans)
  lt = pred[] compare(i0, i1), direction=LT
  first = pred[] and(ties, lt)
  loses = pred[] not(both)
  sole = pred[] and(wins, loses)
  left = pred[] or(sole, first)
  v = )",
             t, "[] select(left, v0, v1)\n  i = s32[] select(left, i0, i1)\n  ROOT r = (", t,
             "[], s32[]) tuple(v, i) }\n");
}

std::string ArgMaxOf(std::string_view type, int64_t m, int64_t n, int along) {
  std::string shape = Cat("[", m, ",", n, "]"), reduced = Cat("[", along == 1 ? m : n, "]");
  return Cat("HloModule m\n", ArgMax(type), "ENTRY e { x = ", type, shape,
             " parameter(0)\n  i = s32", shape, " iota(), iota_dimension=", along,
             "\n  low = ", type, "[] constant(", type == "f32" ? "-inf" : "-128",
             ")\n  zero = s32[] constant(0)\n  ROOT r = (", type, reduced, ", s32", reduced,
             ") reduce(x, i, low, zero), dimensions={", along, "}, to_apply=pick }");
}

TEST(GpuSelections, ArgMax) {
  auto check = [](std::string_view type, int64_t m, int64_t n, int along, size_t launches) {
    size_t most = 0;
    for (const kernel::GpuSchedule& s : testing::CheckOnGpu(ArgMaxOf(type, m, n, along), 0)) {
      EXPECT_NE(s.form, Form::kSerial);
      most = std::max(most, s.launches.size());
    }
    EXPECT_EQ(most, launches);
  };
  check("f32", 7, 1000, 1, 1);
  check("s8", 40, 70, 1, 1);
  check("f32", 130, 70, 0, 1);
  // One row, which several blocks share.
  check("f32", 1, 100000, 1, 2);
}

// JAX's, which keeps the left one of two NaNs: teams combine what they have found by the places.
std::string ArgMaxInOrder(int64_t m, int64_t n) {
  const std::string shape = Cat("[", m, ",", n, "]"), reduced = Cat("[", m, "]");
  return Cat(R"(HloModule m
pick { v0 = f32[] parameter(0)
  i0 = s32[] parameter(1)
  v1 = f32[] parameter(2)
  i1 = s32[] parameter(3)
  gt = pred[] compare(v0, v1), direction=GT
  nan = pred[] compare(v0, v0), direction=NE
  wins = pred[] or(gt, nan)
  eq = pred[] compare(v0, v1), direction=EQ
  lt = pred[] compare(i0, i1), direction=LT
  first = pred[] and(eq, lt)
  left = pred[] or(wins, first)
  v = f32[] select(wins, v0, v1)
  i = s32[] select(left, i0, i1)
  ROOT r = (f32[], s32[]) tuple(v, i) }
ENTRY e { x = f32)",
             shape, " parameter(0)\n  i = s32", shape,
             " iota(), iota_dimension=1\n  low = f32[] constant(-inf)\n  none = s32[] "
             "constant(0)\n  ROOT r = (f32",
             reduced, ", s32", reduced,
             ") reduce(x, i, low, none), dimensions={1}, to_apply=pick }");
}

TEST(GpuSelections, ArgMaxInOrder) {
  for (auto [m, n, launches] : {std::tuple{7, 1000, 1}, {40, 70, 1}, {1, 100000, 2}}) {
    // Op by op, places are numbers like others.
    size_t most = 0;
    for (const kernel::GpuSchedule& s : testing::CheckOnGpu(ArgMaxInOrder(m, n), 0)) {
      if (s.form == Form::kTeams) most = std::max(most, s.launches.size());
    }
    EXPECT_EQ(most, static_cast<size_t>(launches));
  }
}

// What a computation is, as a reduction's; it has as many accumulators as `types` says.
bool IsSelection(const std::string& computation, std::vector<ElementType> types) {
  std::string shape = Cat(TypeName(types[0]), "[8]");
  std::string name = Cat(TypeName(types[0]), "[]");
  std::string text = Cat("HloModule m\n", computation);
  if (types.size() == 1) {
    text +=
        Cat("ENTRY e { x = ", shape, " parameter(0)\n  z = ", name,
            " parameter(1)\n  ROOT r = ", name, " reduce(x, z), dimensions={0}, to_apply=pick }");
  } else {
    text += Cat("ENTRY e { x = ", shape, " parameter(0)\n  i = s32[8] parameter(1)\n  z = ", name,
                " parameter(2)\n  n = s32[] parameter(3)\n  ROOT r = (", name,
                ", s32[]) reduce(x, i, z, n), dimensions={0}, to_apply=pick }");
  }
  auto module = ir::ParseOrDie(text);
  return kernel::IsSelection(*kernel::CombinerOf(*module->entry()->root()), types);
}

std::string Pick(std::string_view type, std::string_view body) {
  return Cat("pick { a = ", type, "[] parameter(0)\n  b = ", type, "[] parameter(1)\n", body,
             " }\n");
}

TEST(Selections, AreShown) {
  EXPECT_TRUE(IsSelection(ArgMax("f32"), {ElementType::kF32, ElementType::kS32}));
  EXPECT_TRUE(IsSelection(ArgMax("s8"), {ElementType::kS8, ElementType::kS32}));
  EXPECT_TRUE(IsSelection(Pick("s32", R"(  p = pred[] compare(a, b), direction=GE
  ROOT r = s32[] select(p, a, b))"),
                          {ElementType::kS32}));
  // NaN is kept where it is on the right alone.
  EXPECT_FALSE(IsSelection(Pick("f32", R"(  p = pred[] compare(a, b), direction=GE
  ROOT r = f32[] select(p, a, b))"),
                           {ElementType::kF32}));
  // The last one, and sums: the order matters, or how often.
  EXPECT_FALSE(
      IsSelection(Pick("s32", "  f = pred[] constant(false)\n  ROOT r = s32[] select(f, a, b)"),
                  {ElementType::kS32}));
  EXPECT_FALSE(IsSelection(Pick("s32", "  ROOT r = s32[] add(a, b)"), {ElementType::kS32}));
  // Alternatives that do not chain: a beats b by the index and b beats c by the value.
  EXPECT_FALSE(IsSelection(R"(pick { v0 = f32[] parameter(0)
  i0 = s32[] parameter(1)
  v1 = f32[] parameter(2)
  i1 = s32[] parameter(3)
  p = pred[] compare(v0, v1), direction=GT
  v = f32[] select(p, v0, v1)
  q = pred[] compare(i0, i1), direction=LT
  i = s32[] select(q, i0, i1)
  x = pred[] compare(i0, i1), direction=EQ
  w = f32[] select(x, v0, v)
  ROOT r = (f32[], s32[]) tuple(w, i) }
)",
                           {ElementType::kF32, ElementType::kS32}));
}

}  // namespace
}  // namespace kiln

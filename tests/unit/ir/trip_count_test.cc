// Trip counts, induction variables and invariants of loops.
#include "ir/analysis/trip_count.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "support/hlo.h"

namespace kiln::ir {
namespace {

// A loop of (i, previous i, x) that adds `step` to i, of the type, from `start` while
// "i DIRECTION bound".
std::unique_ptr<Module> Loop(std::string_view type, int64_t start, int64_t step,
                             std::string_view direction, int64_t bound) {
  const std::string state = Cat("(", type, "[], ", type, "[], f32[])");
  return ParseOrDie(Cat(R"(HloModule m
condition { s = )",
                        state, R"( parameter(0)
  i = )",
                        type, R"([] get-tuple-element(s), index=0
  n = )",
                        type, "[] constant(", bound, R"()
  ROOT p = pred[] compare(i, n), direction=)",
                        direction, R"( }
body { s = )",
                        state, R"( parameter(0)
  i = )",
                        type, R"([] get-tuple-element(s), index=0
  x = f32[] get-tuple-element(s), index=2
  c = )",
                        type, "[] constant(", step, R"()
  j = )",
                        type, R"([] add(i, c)
  ROOT t = )",
                        state, R"( tuple(j, i, x) }
ENTRY e { x = f32[] parameter(0)
  i = )",
                        type, "[] constant(", start, R"()
  h = )",
                        type, "[] constant(", start - step, R"()
  t = )",
                        state, R"( tuple(i, h, x)
  ROOT w = )",
                        state, R"( while(t), condition=condition, body=body })"));
}

std::optional<int64_t> TripCount(std::string_view type, int64_t start, int64_t step,
                                 std::string_view direction, int64_t bound) {
  const std::unique_ptr<Module> module = Loop(type, start, step, direction, bound);
  return InductionOf(*module->entry()->root()).trip_count;
}

TEST(TripCount, IsHowOftenTheBodyRuns) {
  EXPECT_EQ(TripCount("s32", 0, 1, "LT", 10), 10);
  EXPECT_EQ(TripCount("s32", 0, 3, "LT", 10), 4);
  EXPECT_EQ(TripCount("s32", 0, 3, "LE", 9), 4);
  EXPECT_EQ(TripCount("s64", 10, -2, "GT", 0), 5);
  EXPECT_EQ(TripCount("s32", 0, 5, "NE", 20), 4);
  EXPECT_EQ(TripCount("s32", 10, 1, "LT", 10), 0);
}

TEST(TripCount, IsNotKnownWhereTheVariableGoesRound) {
  EXPECT_EQ(TripCount("s32", 0, 3, "NE", 10), std::nullopt);
  EXPECT_EQ(TripCount("s8", 0, 100, "LT", 120), std::nullopt);
  EXPECT_EQ(TripCount("s32", 0, -1, "LT", 10), std::nullopt);
}

TEST(Induction, HasVariablesAndThoseThatFollow) {
  const std::unique_ptr<Module> module = Loop("s32", 2, 3, "LT", 11);
  const Instruction& loop = *module->entry()->root();
  const Induction induction = InductionOf(loop);
  ASSERT_EQ(induction.variables.size(), 2u);
  for (const InductionVariable& v : induction.variables) {
    EXPECT_EQ(v.step, 3);
    EXPECT_EQ(v.start, v.element == 0 ? 2 : -1);
    const Interval& range = induction.ranges.at(v.element);
    EXPECT_EQ(range.low, *v.start);
    EXPECT_EQ(range.high, *v.start + 6);
  }
  EXPECT_FALSE(IsInvariant(loop, 0));
  EXPECT_FALSE(IsInvariant(loop, 1));
  EXPECT_TRUE(IsInvariant(loop, 2));
}

}  // namespace
}  // namespace kiln::ir

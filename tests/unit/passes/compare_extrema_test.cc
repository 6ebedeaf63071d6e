// Comparisons of extrema in place of their operands: every direction, on both sides, for numbers
// and NaNs.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/strings.h"
#include "ir/text.h"
#include "passes/passes.h"
#include "random/fodder.h"
#include "support/interp.h"

namespace kiln::passes {
namespace {

// Each value with each other one.
std::vector<Literal> Pairs() {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const float values[] = {0, -0.0f, 1, -1, inf, -inf, std::nanf("")};
  std::vector<float> x, y;
  for (float a : values) {
    for (float b : values) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  const Shape shape(ElementType::kF32, {49});
  return {Literal::Array<float>(shape, x), Literal::Array<float>(shape, y)};
}

std::string ModuleOf(std::string_view extremum, std::string_view operands,
                     std::string_view direction) {
  return Cat("HloModule m\nENTRY e {\nx = f32[49] parameter(0)\ny = f32[49] parameter(1)\n",
             "s = f32[49] copy(x)\nm = f32[49] ", extremum, "(s, y)\np = pred[49] compare(",
             operands, "), direction=", direction,
             "\nROOT t = (f32[49], pred[49]) tuple(m, p)\n}\n");
}

TEST(CompareExtrema, ComparisonsStay) {
  const std::vector<Literal> arguments = Pairs();
  int changes = 0;
  for (std::string_view extremum : {"maximum", "minimum"}) {
    for (std::string_view operands : {"s, y", "y, s"}) {
      for (std::string_view direction : {"EQ", "NE", "GT", "GE", "LT", "LE"}) {
        const std::string text = ModuleOf(extremum, operands, direction);
        SCOPED_TRACE(text);
        auto module = ir::ParseOrDie(text);
        auto expected = interp::Evaluate(*module, arguments);
        ASSERT_TRUE(expected.ok()) << expected.status().ToString();
        const Result<bool> changed = CompareExtrema(*module, {});
        ASSERT_TRUE(changed.ok()) << changed.status().ToString();
        changes += *changed;
        auto actual = interp::Evaluate(*module, arguments);
        ASSERT_TRUE(actual.ok()) << actual.status().ToString();
        EXPECT_EQ(testing::BitDifference(*expected, *actual), "");
      }
    }
  }
  EXPECT_EQ(changes, 8);
}

}  // namespace
}  // namespace kiln::passes

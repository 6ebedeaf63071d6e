// How many vectors of an elementwise kernel go side by side.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "ir/text.h"
#include "kernel/build.h"
#include "kernel/schedule/cpu/nest.h"
#include "support/compiled.h"
#include "support/hlo.h"

namespace kiln {
namespace {

// Polynomials of x, each of so many steps of two ops, and their sum, by pairs.
std::string Polynomials(int64_t elements, int count, int steps) {
  const std::string type = Cat("f32[", elements, "]");
  std::string text = Cat("HloModule m\nf {\nx = ", type, " parameter(0)\n");
  std::vector<std::string> values;
  auto add = [&](std::string_view op, std::string_view a, std::string_view b) {
    const std::string name = Cat("v", text.size());
    text += Cat(name, " = ", type, " ", op, "(", a, ", ", b, ")\n");
    return name;
  };
  for (int p = 0; p < count; ++p) {
    std::string y = "x";
    for (int k = 0; k < steps; ++k) y = add("add", add("multiply", y, "x"), "x");
    values.push_back(y);
  }
  while (values.size() > 1) {
    std::vector<std::string> sums;
    for (size_t i = 0; i + 1 < values.size(); i += 2)
      sums.push_back(add("subtract", values[i], values[i + 1]));
    if (values.size() % 2 != 0) sums.push_back(values.back());
    values = std::move(sums);
  }
  return Cat(text, "ROOT r = ", type, " negate(", values[0], ")\n}\nENTRY e {\nx = ", type,
             " parameter(0)\nROOT r = ", type, " fusion(x), kind=kLoop, calls=f\n}\n");
}

int UnrollOf(int64_t elements, int count, int steps) {
  target::Cpu cpu = target::HostCpuWithVectors(32).cpu;
  cpu.l2_bytes = 1 << 20;
  auto module = ir::ParseOrDie(Polynomials(elements, count, steps));
  auto kernel = kernel::BuildKernel(kernel::GroupOf(*module->entry()->root()), "k");
  EXPECT_TRUE(kernel.ok()) << kernel.status().ToString();
  return kernel::ScheduleNest(*kernel, cpu).stages.front().unroll;
}

TEST(Unroll, ChainsOfLargeArraysGoSideBySide) {
  constexpr int64_t kLarge = 1 << 20;
  EXPECT_EQ(UnrollOf(kLarge, 1, 20), 4);  // each op waits for the one before
  EXPECT_EQ(UnrollOf(kLarge, 3, 8), 2);   // three of them side by side are half of what is wanted
  EXPECT_EQ(UnrollOf(kLarge, 12, 2), 1);  // enough
  EXPECT_EQ(UnrollOf(kLarge, 3, 20), 4);  // of long code the next vector is out of sight
}

TEST(Unroll, CodeStaysShort) {
  constexpr int64_t kLarge = 1 << 20, kSmall = 1 << 10;
  EXPECT_EQ(UnrollOf(kSmall, 1, 20), 1);
  EXPECT_EQ(UnrollOf(kLarge, 1, 120), 1);
}

}  // namespace
}  // namespace kiln

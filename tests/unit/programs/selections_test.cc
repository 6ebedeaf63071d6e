// Reductions that keep one of two elements, in vectors along what is reduced.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/labels.h"
#include "support/literal.h"

namespace kiln::testing {
namespace {

// As JAX has it: of two NaNs it keeps the left one, so that in order it keeps the first.
std::string Body(std::string_view type, std::string_view index) {
  return Cat("pick { v0 = ", type, "[] parameter(0)\n  i0 = ", index,
             "[] parameter(1)\n  v1 = ", type, "[] parameter(2)\n  i1 = ", index, R"([] parameter(3)
  gt = pred[] compare(v0, v1), direction=GT
  nan = pred[] compare(v0, v0), direction=NE
  wins = pred[] or(gt, nan)
  eq = pred[] compare(v0, v1), direction=EQ
  lt = pred[] compare(i0, i1), direction=LT
  first = pred[] and(eq, lt)
  left = pred[] or(wins, first)
  v = )",
             type, "[] select(wins, v0, v1)\n  i = ", index,
             "[] select(left, i0, i1)\n  ROOT r = (", type, "[], ", index, "[]) tuple(v, i) }\n");
}

std::string ArgMax(std::string_view type, std::string_view index, int64_t rows, int64_t columns,
                   int first = 0) {
  const std::string shape = Cat("[", rows, ",", columns, "]"), reduced = Cat("[", rows, "]");
  return Cat("HloModule m\n", Body(type, index), "ENTRY e { x = ", type, shape,
             " parameter(0)\n  i = ", index, shape, " iota(), iota_dimension=1\n  low = ", type,
             "[] constant(-inf)\n  zero = ", index, "[] constant(", first, ")\n  ROOT r = (", type,
             reduced, ", ", index, reduced,
             ") reduce(x, i, low, zero), dimensions={1}, to_apply=pick }");
}

// Few numbers, which tie, and rows without and with NaNs, of all of them, and of none but the
// least.
Literal Rows(ElementType type, int64_t rows, int64_t columns) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const int64_t bytes = ByteWidth(type);
  Literal all(Shape(type, {rows, columns}));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t hash = (r * 7919 + c * 104729) % 1009;
      double value = static_cast<double>(hash % 5);
      if (r % 5 == 1 && hash % 17 == 3) value = nan;
      if (r % 5 == 2) value = nan;
      if (r % 5 == 3) value = -infinity;
      if (r % 5 == 4 && hash % 31 == 7) value = infinity;
      const Literal element = Literal::ScalarOf(type, value);
      std::memcpy(all.data() + (r * columns + c) * bytes, element.data(),
                  static_cast<size_t>(bytes));
    }
  }
  return all;
}

void CheckArgMax(const std::string& text, ElementType type, int64_t rows, int64_t columns) {
  auto module = ir::ParseOrDie(text);
  const std::vector<Literal> arguments = {Rows(type, rows, columns)};
  auto expected = interp::Evaluate(*module, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (int vector_bytes : {16, 32, 64}) {
    auto found = RunCompiled(*module, arguments, true, vector_bytes);
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    EXPECT_EQ(Difference(*expected, *found, 0, 0), "") << text << vector_bytes;
  }
}

// Whether the program's one kernel has vectors along its reduced variable.
bool IsInVectors(const std::string& text) {
  auto compiled = CompileWithKernels(ir::ParseOrDie(text), target::HostCpuWithVectors(32));
  EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
  if (!compiled.ok()) return false;
  const auto& kernel = *compiled->lowered.kernels.begin();
  const auto* nest = std::get_if<kernel::CpuNestSchedule>(&kernel.schedule);
  return nest && kernel.kernel.IsInner(nest->stages.front().vector_variable);
}

TEST(SelectionsInVectors, ArgMax) {
  for (int64_t columns : {1, 2, 7, 8, 9, 31, 33, 64, 257, 1000}) {
    CheckArgMax(ArgMax("f32", "s32", 11, columns), ElementType::kF32, 11, columns);
  }
  CheckArgMax(ArgMax("f64", "s64", 6, 77), ElementType::kF64, 6, 77);
  CheckArgMax(ArgMax("bf16", "u32", 6, 300), ElementType::kBF16, 6, 300);
  EXPECT_TRUE(IsInVectors(ArgMax("f32", "s32", 4, 1000)));
  EXPECT_TRUE(IsInVectors(ArgMax("f32", "s16", 4, 1000)));
}

// Places that begin again, and an initial one that is none, do not tell which NaN was first.
TEST(SelectionsInVectors, OtherPlacesAreInOrder) {
  CheckArgMax(ArgMax("f32", "s8", 6, 1000), ElementType::kF32, 6, 1000);
  CheckArgMax(ArgMax("f32", "s32", 6, 1000, 7), ElementType::kF32, 6, 1000);
  EXPECT_FALSE(IsInVectors(ArgMax("f32", "s8", 4, 1000)));
  EXPECT_FALSE(IsInVectors(ArgMax("f32", "s32", 4, 1000, 7)));
}

KILN_LABEL(gpu_sample, "SelectionsInVectors");

}  // namespace
}  // namespace kiln::testing

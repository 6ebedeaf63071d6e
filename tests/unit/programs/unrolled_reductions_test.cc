// Reductions over stacks of arrays, of every type, along every dimension.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/literal.h"

namespace kiln::testing {
namespace {

std::string Dims(std::vector<int64_t> dims) {
  std::string text;
  for (int64_t d : dims) text += Cat(text.empty() ? "" : ",", d);
  return Cat("[", text, "]");
}

// The sum or another fold of `columns` arrays of `dims`, side by side along `along`; of them times
// weights of each array.
std::string Stack(std::string_view type, std::string_view op, std::string_view init,
                  std::vector<int64_t> dims, int64_t along, int64_t columns, bool weighted) {
  std::vector<int64_t> column = dims, stack = dims;
  column.insert(column.begin() + along, 1);
  stack.insert(stack.begin() + along, columns);
  std::string text = Cat("HloModule m\nf { a = ", type, "[] parameter(0)\n  b = ", type,
                         "[] parameter(1)\n  ROOT r = ", type, "[] ", op, "(a, b) }\nENTRY e {\n");
  std::string operands;
  for (int64_t k = 0; k < columns; ++k) {
    text += Cat("  x", k, " = ", type, Dims(column), " parameter(", k, ")\n");
    operands += Cat(k == 0 ? "" : ", ", "x", k);
  }
  text += Cat("  c = ", type, Dims(stack), " concatenate(", operands, "), dimensions={", along,
              "}\n  w = ", type, "[", columns, "] parameter(", columns, ")\n  all = ", type,
              Dims(stack), " broadcast(w), dimensions={", along, "}\n  m = ", type, Dims(stack),
              weighted ? " multiply(c, all)" : " copy(c)", "\n  init = ", type, "[] constant(",
              init, ")\n  ROOT r = ", type, Dims(dims), " reduce(m, init), dimensions={", along,
              "}, to_apply=f }");
  return text;
}

// An array of these values, one after the other.
Literal Filled(const Shape& shape, const std::function<double(int64_t)>& value) {
  Literal all(shape);
  const int64_t bytes = ByteWidth(shape.type());
  for (int64_t e = 0; e < shape.num_elements(); ++e) {
    const Literal element = Literal::ScalarOf(shape.type(), value(e));
    std::memcpy(all.data() + e * bytes, element.data(), static_cast<size_t>(bytes));
  }
  return all;
}

// Of small whole numbers, whose sums and products are exact in any order.
void CheckUnrolled(const std::string& text) {
  auto module = ir::ParseOrDie(text);
  std::vector<Literal> arguments;
  for (const ir::Instruction* p : module->entry()->parameters()) {
    const int64_t k = std::ssize(arguments);
    const bool is_signed = IsSigned(p->shape().type()) || IsFloat(p->shape().type());
    arguments.push_back(Filled(p->shape(), [&](int64_t e) {
      return static_cast<double>((e * 7919 + k * 104729) % 1009 % 5 - (is_signed ? 2 : 0));
    }));
  }
  auto expected = interp::Evaluate(*module, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  auto found = RunCompiled(*module, arguments, true);
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_EQ(Difference(*expected, *found, 0, 0), "") << text;
}

std::string Init(std::string_view type, int value) {
  return type == "c64" ? Cat("(", value, ", 0)") : Cat(value);
}

TEST(UnrolledReductions, OfEveryTypeAlongEveryDimension) {
  for (std::string_view type : {"f32", "f64", "bf16", "s8", "u16", "s64", "c64"}) {
    for (int64_t along : {0, 1, 2}) {
      for (bool weighted : {false, true}) {
        for (int64_t columns : {2, 16, 17}) {
          CheckUnrolled(Stack(type, "add", Init(type, 0), {9, 35}, along, columns, weighted));
        }
        CheckUnrolled(Stack(type, "multiply", Init(type, 3), {9, 35}, along, 3, weighted));
      }
      if (type == "c64") continue;
      CheckUnrolled(Stack(type, "maximum", "1", {9, 35}, along, 3, false));
      CheckUnrolled(Stack(type, "minimum", "1", {9, 35}, along, 3, true));
    }
  }
  CheckUnrolled(Stack("pred", "and", "true", {9, 35}, 0, 4, false));
  CheckUnrolled(Stack("f32", "add", "0.5", {}, 0, 4, true));
  CheckUnrolled(Stack("f32", "add", "0", {0}, 0, 4, true));
}

// Sixteen terms of which a narrow sum would lose most: 256 and fifteen ones.
TEST(UnrolledReductions, SumsOfNarrowFloatsAreWide) {
  auto module = ir::ParseOrDie(Stack("bf16", "add", "0", {64}, 0, 16, true));
  std::vector<Literal> arguments;
  for (const ir::Instruction* p : module->entry()->parameters()) {
    const bool is_first = arguments.empty();
    arguments.push_back(Filled(p->shape(), [&](int64_t) { return is_first ? 256 : 1; }));
  }
  auto found = RunCompiled(*module, arguments, true);
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  // 271, rounded to 8 bits.
  EXPECT_EQ(found->AsDouble(0), 272);
}

// As JAX has it, with NaNs and ties among the values.
TEST(UnrolledReductions, PlacesOfTheGreatest) {
  for (int64_t along : {0, 1}) {
    const std::string stack = along == 0 ? "[4,60]" : "[60,4]";
    const std::string column = along == 0 ? "[1,60]" : "[60,1]";
    std::string text = R"(HloModule m
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
ENTRY e {
)";
    for (int k = 0; k < 4; ++k) text += Cat("  x", k, " = f32", column, " parameter(", k, ")\n");
    text += Cat("  x = f32", stack, " concatenate(x0, x1, x2, x3), dimensions={", along,
                "}\n  i = s32", stack, " iota(), iota_dimension=", along, R"(
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = (f32[60], s32[60]) reduce(x, i, low, zero), dimensions={)",
                along, "}, to_apply=pick }");
    auto module = ir::ParseOrDie(text);
    std::vector<Literal> arguments;
    for (int64_t k = 0; k < 4; ++k) {
      arguments.push_back(Filled(module->entry()->parameter(k)->shape(), [&](int64_t e) {
        const int64_t hash = (e * 7919 + k * 104729) % 1009;
        return hash % 7 == 0 ? std::numeric_limits<double>::quiet_NaN()
                             : static_cast<double>(hash % 3);
      }));
    }
    auto expected = interp::Evaluate(*module, arguments);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    auto found = RunCompiled(*module, arguments, true);
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    EXPECT_EQ(Difference(*expected, *found, 0, 0), "") << text;
  }
}

// Of other dimensions as well, of a slice of an argument beside the stack, and of two reductions.
TEST(UnrolledReductions, BesideOthers) {
  CheckUnrolled(R"(HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
greatest { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b) }
ENTRY e {
  x = f32[11,1,37] parameter(0)
  y = f32[11,1,37] parameter(1)
  z = f32[11,2,37] parameter(2)
  c = f32[11,2,37] concatenate(x, y), dimensions={1}
  m = f32[11,2,37] multiply(c, z)
  i = f32[11,2,37] iota(), iota_dimension=2
  n = f32[11,2,37] add(m, i)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  r = f32[11] reduce(n, zero), dimensions={1,2}, to_apply=add
  s = f32[11,37] reduce(c, low), dimensions={1}, to_apply=greatest
  t = f32[37,11] transpose(s), dimensions={1,0}
  ROOT u = (f32[11], f32[37,11]) tuple(r, t) })");
}

}  // namespace
}  // namespace kiln::testing

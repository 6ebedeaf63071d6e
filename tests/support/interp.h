// Evaluates HLO text and shows the result as text.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "support/hlo.h"

namespace kiln::testing {

// The value of a module in HLO's text, or the error.
inline std::string ValueOf(std::string_view module, const std::vector<Literal>& arguments = {},
                           const interp::Options& options = {}) {
  auto parsed = ir::ParseOrDie(module);
  Result<Literal> result = interp::Evaluate(*parsed, arguments, options);
  return result.ok() ? result->ToString() : result.status().ToString();
}

// The value of one expression, such as "s32[2] negate(s32[2] constant({1, 2}))".
inline std::string Eval(std::string_view expression) {
  return ValueOf(Cat("HloModule m\nENTRY e {\n  ROOT r = ", expression, "\n}\n"));
}

// An op on constants of one type and dimensions: Apply("add", "s32[2]", {"{1, 2}", "{3, 4}"}).
// `result` is the result's shape where it is another one, `attributes` what follows the operands.
inline std::string Apply(std::string_view op, std::string_view shape,
                         std::initializer_list<std::string_view> operands,
                         std::string_view result = "", std::string_view attributes = "") {
  std::string text = Cat(result.empty() ? shape : result, " ", op, "(");
  bool first = true;
  for (std::string_view operand : operands) {
    text += Cat(first ? "" : ", ", shape, " constant(", operand, ")");
    first = false;
  }
  return Eval(Cat(text, ")", attributes.empty() ? "" : ", ", attributes));
}

// All bit patterns of a type of at most 16 bits.
inline Literal AllValues(ElementType type) {
  const int64_t bits = BitWidth(type), count = int64_t{1} << bits;
  Literal all(Shape(type, {count}));
  for (int64_t i = 0; i < count; ++i) {
    // A signed integer of less than a byte is extended.
    const int64_t value = IsSigned(type) && i >= count / 2 ? i - count : i;
    std::memcpy(all.data() + i * ByteWidth(type), &value, static_cast<size_t>(ByteWidth(type)));
  }
  return all;
}

// All pairs of values of a type of at most 8 bits.
inline std::pair<Literal, Literal> AllPairs(ElementType type) {
  Literal all = AllValues(type);
  const int64_t count = all.shape().num_elements();
  Literal x(Shape(type, {count * count})), y(x.shape());
  for (int64_t i = 0; i < count * count; ++i) {
    x.data()[i] = all.data()[i / count];
    y.data()[i] = all.data()[i % count];
  }
  return {std::move(x), std::move(y)};
}

// The op on whole arrays; `result` is the element type of the result.
inline Literal Evaluate(std::string_view op, const std::vector<Literal>& operands,
                        ElementType result, std::string_view attributes = "") {
  std::string text = "HloModule m\nENTRY e {\n", names;
  for (size_t i = 0; i < operands.size(); ++i) {
    text += Cat("  p", i, " = ", operands[i].shape(), " parameter(", i, ")\n");
    names += Cat(i > 0 ? ", p" : "p", i);
  }
  Shape shape = operands[0].shape();
  shape.set_type(result);
  text += Cat("  ROOT r = ", shape, " ", op, "(", names, ")", attributes, "\n}\n");
  auto value = interp::Evaluate(*ir::ParseOrDie(text), operands);
  EXPECT_TRUE(value.ok()) << value.status().ToString();
  return value.ok() ? *std::move(value) : Literal(shape);
}

// The bits of an element; any NaN is one.
inline uint64_t BitsAt(const Literal& l, int64_t i) {
  ElementType type = l.shape().type();
  if (IsFloat(type) && std::isnan(l.AsDouble(i))) return UINT64_MAX;
  uint64_t bits = 0;
  std::memcpy(&bits, l.data() + i * ByteWidth(type), static_cast<size_t>(ByteWidth(type)));
  return bits;
}
// Those of a number in a type, converted with one rounding.
inline uint64_t BitsOf(ElementType type, double value) {
  return BitsAt(Literal::ScalarOf(type, value), 0);
}

}  // namespace kiln::testing

// Evaluates HLO text and shows the result as text.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "hlo_test_util.h"
#include "interp/interpreter.h"

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

}  // namespace kiln::testing

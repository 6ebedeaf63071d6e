// Importing and evaluating StableHLO text in tests.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "interp/interpreter.h"
#include "ir/text.h"
#include "stablehlo/import/import.h"
#include "stablehlo/text/text.h"

namespace kiln::stablehlo {

inline Result<std::unique_ptr<ir::Module>> ImportText(std::string_view text,
                                                      const ImportOptions& options = {}) {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<mlir::Module> tree, ReadText(text));
  return Import(*tree, options);
}

// The instructions of the entry as HLO text, or the error.
inline std::string Imported(std::string_view text, const ImportOptions& options = {}) {
  auto module = ImportText(text, options);
  if (!module.ok()) return module.status().ToString();
  return ir::ToHloText(**module, {.metadata = false});
}

// What the entry gives, or the error.
inline std::string Value(std::string_view text, const std::vector<Literal>& arguments = {},
                         const ImportOptions& options = {}) {
  auto module = ImportText(text, options);
  if (!module.ok()) return module.status().ToString();
  Result<Literal> value = interp::Evaluate(**module, arguments);
  return value.ok() ? value->ToString() : value.status().ToString();
}

// What a function gives whose body this is: the lines before its return, and the values returned.
inline std::string BodyValue(std::string_view body, std::string_view results,
                             std::string_view types) {
  return Value(Cat("func.func @main() -> (", types, ") {\n", body, "\nreturn ", results, " : ",
                   types, "\n}\n"));
}

// The text of a constant: "%x = stablehlo.constant dense<[1, 2]> : tensor<2xi32>\n".
inline std::string Constant(std::string_view name, std::string_view value, std::string_view type) {
  return Cat("%", name, " = stablehlo.constant dense<", value, "> : ", type, "\n");
}

}  // namespace kiln::stablehlo

// Reading StableHLO text in tests.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "stablehlo/mlir/print.h"
#include "stablehlo/text/text.h"

namespace kiln::stablehlo {

// The tree of the text in the generic form, or the error.
inline std::string Generic(std::string_view text, const mlir::PrintOptions& options = {}) {
  auto module = ReadText(text);
  return module.ok() ? mlir::ToText(**module, options) : module.status().ToString();
}

inline std::unique_ptr<mlir::Module> Read(std::string_view text) {
  auto module = ReadText(text);
  EXPECT_TRUE(module.ok()) << module.status().ToString() << "\n" << text;
  return module.ok() ? *std::move(module) : std::make_unique<mlir::Module>();
}

// The attribute that the text has, as the value of an operation in a module without a function.
inline const mlir::Attribute* ReadAttribute(std::unique_ptr<mlir::Module>& module,
                                            std::string_view text) {
  module = Read(Cat("\"x.x\"() {value = ", text, "} : () -> ()"));
  if (module->body()->operations.empty()) return nullptr;
  return module->body()->operations[0]->attribute("value");
}

}  // namespace kiln::stablehlo

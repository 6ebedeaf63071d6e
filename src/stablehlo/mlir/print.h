// The tree as MLIR text in the generic form, readable by the text reader, for dumps and for
// comparison of trees: equal text, equal trees.
#pragma once

#include <string>

#include "stablehlo/mlir/operation.h"

namespace kiln::mlir {

struct PrintOptions {
  // Elements beyond this number are printed as one string of hexadecimal digits.
  int64_t max_listed_elements = 64;
  // The locations in the original program: loc(...) behind operations.
  bool sources = false;
};

std::string ToText(const Module& module, const PrintOptions& options = {});
std::string ToText(const Attribute& attribute, const PrintOptions& options = {});

}  // namespace kiln::mlir

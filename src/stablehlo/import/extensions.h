// Custom calls that stand for operations, and what their operands say of results.
#pragma once

#include <string_view>
#include <vector>

#include "stablehlo/import/op.h"

namespace kiln::stablehlo {

// How a call of that target is imported, or null where it is a call.
Lowering FindExtension(std::string_view target);
Lowering FindLinearAlgebra(std::string_view target);

// Operands by their number in `indices_of_shape_operands`, one for each result, are its sizes.
struct ShapeOperands {
  std::vector<Shape> results;  // empty without that attribute
  Values others;               // the operands that are none of these
};
Result<ShapeOperands> ShapeOperandsOf(Op& op);

}  // namespace kiln::stablehlo

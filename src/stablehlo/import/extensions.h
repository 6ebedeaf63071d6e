// Custom calls that represent operations, and their shape operands.
#pragma once

#include <string_view>
#include <vector>

#include "stablehlo/import/op.h"

namespace kiln::stablehlo {

// The importer of a target, or null for an ordinary call.
Lowering FindExtension(std::string_view target);
Lowering FindLinearAlgebra(std::string_view target);
Lowering FindLapack(std::string_view target);

// Operands numbered by `indices_of_shape_operands`, one for each result, are its sizes.
struct ShapeOperands {
  std::vector<Shape> results;  // empty without that attribute
  Values others;               // the operands that are none of these
};
Result<ShapeOperands> ShapeOperandsOf(Op& op);

}  // namespace kiln::stablehlo

// Products of quantised arrays.
#pragma once

#include <functional>

#include "stablehlo/import/op.h"

namespace kiln::stablehlo {

// A product of operands 0 and 1 of an operation.
struct Product {
  // The op for such factors, with this element type of the result.
  std::function<Result<ir::Instruction*>(ir::Instruction* lhs, ir::Instruction* rhs,
                                         ElementType type)>
      make;
  // The result's dimension for dimension d of rhs, or nothing if contracted.
  std::function<std::optional<int64_t>(int64_t d)> result_dimension;
  // An upper bound of the number of products per sum.
  int64_t terms = 0;
  // Puts such numbers around lhs where `make` would have zeros, which it then does no more. Unset
  // where there are none.
  std::function<ir::Instruction*(ir::Instruction* lhs, ir::Instruction* number)> pad = nullptr;
};

// The result for any quantised operands. If all are quantised, sums are exact, over integers; a
// factor that is not quantised makes the other one floats.
Result<Values> LowerProduct(Op& op, const Product& product);

}  // namespace kiln::stablehlo

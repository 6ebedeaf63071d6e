// Products of quantised arrays.
#pragma once

#include <functional>

#include "stablehlo/import/op.h"

namespace kiln::stablehlo {

// A product of operands 0 and 1 of an operation.
struct Product {
  // The op for such factors, and elements of the result of such a type.
  std::function<Result<ir::Instruction*>(ir::Instruction* lhs, ir::Instruction* rhs,
                                         ElementType type)>
      make;
  // The result's dimension that is dimension d of rhs, or nothing where that is summed over.
  std::function<std::optional<int64_t>(int64_t d)> result_dimension;
  // How many products each sum has, or more.
  int64_t terms = 0;
};

// The result, whatever of it is quantised. Where all is, sums are taken of integers, exactly; a
// factor that is not makes the other one floats.
Result<Values> LowerProduct(Op& op, const Product& product);

}  // namespace kiln::stablehlo

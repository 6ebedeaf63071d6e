// Products of arrays.
#pragma once

#include "stablehlo/import/op.h"

namespace kiln::stablehlo {

struct DotDimensions {
  Ints lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
};
ir::Instruction* DotOf(Builder& b, ir::Instruction* lhs, ir::Instruction* rhs,
                       const DotDimensions& dimensions, ElementType type);
// The dimension numbers of dot and dot_general.
Result<DotDimensions> DotDimensionsOf(const Op& op);

// A product of lhs and rhs with elements of `type`, by given attributes: both factors are converted
// to a common type allowed for the product.
ir::Instruction* ProductOf(Builder& b, Opcode opcode, ir::Instruction* lhs, ir::Instruction* rhs,
                           Attributes attributes, ElementType type);

}  // namespace kiln::stablehlo

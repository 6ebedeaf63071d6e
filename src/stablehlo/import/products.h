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

}  // namespace kiln::stablehlo

// Products of groups of rows, XLA's ragged-dot, by other ops.
#pragma once

#include "ir/builder.h"

namespace kiln::ir {

// The rows of `lhs` along dimension `ragged` are in groups, one after the other, of the sizes in
// the last dimension of `sizes`; dimensions before that are those of lhs that are batch dimensions,
// or of the kind of `ragged`, and come before it. `dot` has the attributes of a dot. If `ragged` is
//   a dimension that the result has: the product of each row with its group's part of rhs along
//     dimension `group`, and zeros for rows behind all groups;
//   contracting: the product of each group by itself, with the groups as the result's first
//     dimension; `group` is -1;
//   a batch dimension: the dot, with zeros behind all groups; `group` is -1.
// Of the declared element type. A failure is the builder's.
Instruction* RaggedDot(Builder& b, Instruction* lhs, Instruction* rhs, Instruction* sizes,
                       const Attributes& dot, int64_t ragged, int64_t group, ElementType type);

}  // namespace kiln::ir

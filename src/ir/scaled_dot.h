// Products of values with a scale for each block of their elements.
#pragma once

#include "ir/builder.h"

namespace kiln::ir {

// x times its scales, in an element type: a scalar, or an array of x's rank, each of whose elements
// is for a block of x. Blocks along a dimension are of `block` elements, or, if that is 0, as many
// as the sizes say, which must divide. Scales behind the last element of x are ignored. A failure
// is the builder's.
Instruction* TimesScale(Builder& b, Instruction* x, Instruction* scale, ElementType type,
                        int64_t block = 0);
// The dot of two operands, each times its scales, as `type`. Computed in f32, if that is narrower.
Instruction* ScaledDot(Builder& b, std::span<Instruction* const> operands_then_scales,
                       const Attributes& dot, ElementType type, int64_t block = 0);

}  // namespace kiln::ir

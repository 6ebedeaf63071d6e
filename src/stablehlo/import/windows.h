// Windows, and what convolutions and gathers are made of, for those whose numbers are attributes
// and those whose numbers are operands.
#pragma once

#include "stablehlo/import/op.h"

namespace kiln::stablehlo {

// Names of the attributes of an operation with a window; "" where it has none of that kind.
struct WindowNames {
  std::string_view strides = "window_strides", base_dilations = "", window_dilations = "",
                   padding = "padding", reversal = "";
};

// A window of such sizes. `padding` is low and high for each dimension, or null: the attribute.
Result<std::vector<WindowDimension>> WindowOf(const Op& op, const Ints& sizes,
                                              const WindowNames& names,
                                              const Ints* padding = nullptr);

// Operands 0 and 1 of an operation with the attributes of stablehlo.gather.
Result<ir::Instruction*> GatherOf(Op& op, Ints slice_sizes);

// Operands 0 and 1 of an operation with the attributes of stablehlo.convolution, `padding` as for
// WindowOf.
Result<Values> ConvolutionBy(Op& op, const Ints* padding = nullptr);

// A product of lhs and rhs whose elements are of `type`, by attributes that are made for it: both
// factors are made of one type that the product may have.
ir::Instruction* ProductOf(Builder& b, Opcode opcode, ir::Instruction* lhs, ir::Instruction* rhs,
                           Attributes attributes, ElementType type);

}  // namespace kiln::stablehlo

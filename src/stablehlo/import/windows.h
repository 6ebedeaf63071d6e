// Windows and convolutions, for operations with numbers in attributes or in operands.
#pragma once

#include "stablehlo/import/op.h"

namespace kiln::stablehlo {

// Names of the attributes of an operation with a window; "" if absent.
struct WindowNames {
  std::string_view strides = "window_strides", base_dilations = "", window_dilations = "",
                   padding = "padding", reversal = "";
};

// A window of such sizes. `padding` is low and high for each dimension, or null: the attribute.
Result<std::vector<WindowDimension>> WindowOf(const Op& op, const Ints& sizes,
                                              const WindowNames& names,
                                              const Ints* padding = nullptr);

// Operands 0 and 1 of an operation with the attributes of stablehlo.convolution, `padding` as for
// WindowOf.
Result<Values> ConvolutionBy(Op& op, const Ints* padding = nullptr);

}  // namespace kiln::stablehlo

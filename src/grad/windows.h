// Windows of derivatives.
#pragma once

#include "ops/attributes.h"
#include "tensor/dimension.h"

namespace kiln::grad {

// Of a window at `to` places over `from` elements, which are not none: the window that moves over
// an array of the places, at the elements as its places. At an element it has the places whose
// windows have the element, last part of the window first.
WindowDimension Transposed(const WindowDimension& window, const Dimension& from,
                           const Dimension& to);

}  // namespace kiln::grad

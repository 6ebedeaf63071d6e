// Values at the ends of an element type.
#pragma once

#include "tensor/literal.h"

namespace kiln {

// Scalars: the least and the greatest value of a type, of a float that has infinities these;
// complex numbers are ordered by their real parts, then by the imaginary ones.
Literal Lowest(ElementType type);
Literal Highest(ElementType type);
// The pred or integer whose every bit is set: true, -1, the greatest unsigned value. Of any other
// type 0.
Literal AllOnes(ElementType type);

}  // namespace kiln

// Regions of loops and branches that take their values one by one.
#pragma once

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::capi {

// HLO's loops and branches call their regions with one value, a tuple where there are several. A
// region may also be written with a parameter for each element: then this makes the computation
// that takes the tuple and calls the region with its elements. With `gives_state`, an array that
// such a region gives becomes a tuple too, as a loop's body must give what it takes. Where the
// region takes `argument` as it is, it is returned as it is.
Result<ir::Computation*> TakeTuple(ir::Computation& region, const Shape& argument,
                                   bool gives_state);

}  // namespace kiln::capi

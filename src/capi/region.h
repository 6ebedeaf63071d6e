// Regions of loops and branches with one parameter per value.
#pragma once

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::capi {

// HLO's loops and branches call their regions with one value, a tuple for several. A region may
// also have a parameter per element: this function wraps it in a computation that takes the tuple
// and calls the region with its elements. With `gives_state`, an array result of such a region
// becomes a tuple too, because a loop's body returns its parameter's shape. A region that takes
// `argument` directly is returned unchanged.
Result<ir::Computation*> TakeTuple(ir::Computation& region, const Shape& argument,
                                   bool gives_state);

}  // namespace kiln::capi

// The collective operations of a warp's lanes.
#pragma once

#include "frame/emulated.h"

namespace kiln::device {

inline constexpr uint32_t kWarpLanes = 32;

// Results for all lanes of KILN_WARP_*; `lanes` has 32. Addresses have been checked.
void RunWarpOperation(int operation, kiln_emulated_thread* const* lanes);
// "shuffle_down" and so on.
const char* WarpOperationName(int operation);

}  // namespace kiln::device

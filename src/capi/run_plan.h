// Runs of plans with the user's buffers.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "kiln/buffer.h"
#include "kiln/executable.h"
#include "session/plan.h"

namespace kiln::capi {

// Checks options and lists, runs the plan to its end, and hands over the results without a buffer
// of the user.
Status RunPlan(const session::Plan& plan, const kiln_execute_options* options,
               kiln_buffer* const* feeds, size_t feed_count, kiln_buffer** fetches,
               size_t fetch_count);

}  // namespace kiln::capi

// The options of sessions, with the environment's flags where they are at their defaults.
#pragma once

#include "base/status.h"
#include "client/client.h"
#include "kiln/session.h"
#include "session/session.h"

namespace kiln::capi {

// INVALID_ARGUMENT names a member out of range.
Result<session::SessionOptions> ReadSessionOptions(const kiln_session_options& options,
                                                   client::Client& client);

}  // namespace kiln::capi

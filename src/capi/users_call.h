// Functions of the user that programs call.
#pragma once

#include <string_view>

#include "base/status.h"
#include "client/client.h"
#include "kiln/custom_call.h"

namespace kiln::capi {

// The status of a function of the user that handed this over.
Status TakeError(kiln_error* error);

// Makes a target's functions callable; see kiln_context_register_call_handler(). Nothing is called
// on failure.
Status RegisterCall(client::Client& client, std::string_view target,
                    const kiln_call_handler& handler);

}  // namespace kiln::capi

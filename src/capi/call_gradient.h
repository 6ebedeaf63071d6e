// Derivatives of custom calls that the user registers.
#pragma once

#include <string_view>

#include "base/status.h"
#include "client/client.h"
#include "ir/ir.h"
#include "kiln/gradient.h"

namespace kiln::capi {

using BuildGradient = kiln_error* (*)(void* user_data, kiln_graph* backward,
                                      const kiln_gradient_call* call);

// See kiln_context_register_gradient(). Nothing is called on failure.
Status RegisterGradient(client::Client& client, std::string_view target, BuildGradient build,
                        void* user_data, void (*destroy)(void*));

// The backward computation of a custom call, in its module; null where its target has none.
Result<ir::Computation*> BackwardOf(const client::Client& client, const ir::Instruction& call);

}  // namespace kiln::capi

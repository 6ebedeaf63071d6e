// Units for the host: ops whose results' sizes depend on values, and those that call the user.
#pragma once

#include <span>
#include <vector>

#include "base/interrupt.h"
#include "base/status.h"
#include "base/trace.h"
#include "client/buffer.h"
#include "client/client.h"
#include "client/transfer.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::session {

// The value of a buffer, once it is ready. UNIMPLEMENTED for layouts that are not row-major. The
// trace may be null.
Result<Literal> ReadOnHost(client::Buffer& buffer, TraceSink* trace);

// Evaluates a unit's module, specialised for its arguments, on the calling thread: the elements of
// its result. Callbacks are the client's custom calls of the same name, and prints go to the log.
Result<std::vector<Literal>> EvaluateOnHost(const ir::Module& module,
                                            std::span<const Literal> arguments,
                                            client::Client& client, const Interrupt& interrupt);

}  // namespace kiln::session

// The user's runs: options and lists of buffers, checked and converted.
#pragma once

#include "base/status.h"
#include "client/execution.h"
#include "kiln/executable.h"

namespace kiln::capi {

// Checks the options and the lists of buffers, and binds a run to them.
Result<client::Execution> BindExecution(Ref<const client::Executable> executable,
                                        const kiln_execute_options* options,
                                        kiln_buffer* const* arguments, size_t argument_count,
                                        kiln_buffer* const* results, size_t result_count);

// After success: a reference to each result without a buffer of the user.
void HandOverResults(const std::vector<Ref<client::Buffer>>& bound, kiln_buffer** results);

}  // namespace kiln::capi

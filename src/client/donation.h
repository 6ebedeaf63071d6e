// Arguments that executions may donate.
#pragma once

#include <cstddef>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::client {

// Which arguments executions may donate, by number: the arrays among the parameters' leaves. These
// are `donors`, and those with a result in their memory already. To each donor without one it gives
// the first result of its type and dimensions that has its own memory, if there is one.
// INVALID_ARGUMENT for a number beyond the last.
Result<std::vector<bool>> AliasDonors(const std::vector<size_t>& donors, ir::Module& module);

}  // namespace kiln::client

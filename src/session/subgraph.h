// The part of a graph that computes some of its values from others.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::session {

// A module whose parameters are the values `feeds` of the entry, and whose result is the tuple of
// the values `fetches`, all by name and all arrays. What is fed is not computed, and neither is
// what only it needs. INVALID_ARGUMENT where a parameter of the entry is needed and not fed, and
// where a name comes twice; NOT_FOUND for a name that is none.
Result<std::unique_ptr<ir::Module>> Subgraph(const ir::Module& module,
                                             std::span<const std::string> feeds,
                                             std::span<const std::string> fetches);

}  // namespace kiln::session

// The part of a graph from feeds to fetches.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::session {

// A module whose parameters are the values `feeds` of the entry, and whose result is the tuple of
// the values `fetches`, all by name and all arrays. It also has the values `targets`, of any shape,
// without results. Fed values and their exclusive inputs are not computed. Needed parameters of the
// entry that are not fed are further parameters. INVALID_ARGUMENT for a duplicate name of feeds or
// fetches; NOT_FOUND for an unknown name.
Result<std::unique_ptr<ir::Module>> Subgraph(const ir::Module& module,
                                             std::span<const std::string> feeds,
                                             std::span<const std::string> fetches,
                                             std::span<const std::string> targets = {});

// INVALID_ARGUMENT for a parameter behind the fed ones.
Status CheckAllFed(const ir::Module& module, size_t fed);

// Makes copies of results that no op computes: parameters and small constants.
void CopyResultsWithoutOp(ir::Module& module);

}  // namespace kiln::session

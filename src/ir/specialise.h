// Puts numbers in for symbols.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::ir {

// The sizes that concrete parameter shapes give to the symbols of a module's parameters. Fails
// where ranks, types or constants differ, or where one symbol would get two sizes.
Result<std::map<std::string, int64_t>> MatchSymbols(const Module& module,
                                                    std::span<const Shape> arguments);

// A copy of the module with each symbol replaced by its size, and every shape inferred again. Fails
// where a symbol has no size, or where the sizes do not fit an op.
Result<std::unique_ptr<Module>> Specialise(const Module& module,
                                           const std::map<std::string, int64_t>& sizes);

}  // namespace kiln::ir

// Puts numbers in for symbols.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::ir {

// The symbols of a module's shapes and attributes.
std::set<std::string> SymbolsOf(const Module& module);

// The sizes that concrete parameter shapes give to the symbols of a module's parameters. Where a
// dimension is a polynomial, it is solved for a symbol that no other dimension gives. Fails where
// ranks, types or constants differ, where one symbol would get two sizes, or none.
Result<SymbolSizes> MatchSymbols(const Module& module, std::span<const Shape> arguments);

// A copy of the module with each symbol replaced by its size, and every shape inferred again. Fails
// where a symbol has no size, where a dimension comes out negative, or where the sizes do not fit
// an op.
Result<std::unique_ptr<Module>> Specialise(const Module& module, const SymbolSizes& sizes);

}  // namespace kiln::ir

// Puts numbers in for symbols and bounds.
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

// A copy of the module with these shapes of its parameters, and every shape inferred again, in
// called computations too: symbols get the sizes of MatchSymbols, and bounded dimensions become the
// given sizes wherever these determine them. The values are those of the module for arguments of
// these shapes. Sizes known at run time only (set-dimension-size by a computed size, a loop that
// changes sizes) keep their bounds; a computation called with different sizes becomes several. The
// entry's instructions keep their names. Fails where a shape does not fit a parameter, or sizes do
// not fit an op, and names the op and the sizes.
Result<std::unique_ptr<Module>> WithParameterShapes(const Module& module,
                                                    std::span<const Shape> shapes);

}  // namespace kiln::ir

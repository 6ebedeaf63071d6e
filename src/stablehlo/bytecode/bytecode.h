// Reads StableHLO programs from portable bytecode: operations of the dialect vhlo, of versions 0.9
// to 1.20, in MLIR's container, of formats 0 to 6.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "stablehlo/mlir/operation.h"

namespace kiln::stablehlo {

// Whether the bytes begin as MLIR bytecode does.
bool IsBytecode(std::string_view bytes);

// Reads one module, into the tree that ReadText makes of the same program: operations, attributes
// and types are those of StableHLO today. Errors begin with "byte N: " and say what was found and
// what was expected; depth and memory are bounded. What a later version has is UNIMPLEMENTED,
// named.
Result<std::unique_ptr<mlir::Module>> ReadBytecode(std::string_view bytes);

}  // namespace kiln::stablehlo

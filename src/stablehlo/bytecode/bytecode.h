// Reads StableHLO programs from portable bytecode: operations of the dialect vhlo, of versions 0.9
// to 1.20, in MLIR's container, of formats 0 to 6.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "stablehlo/mlir/operation.h"

namespace kiln::stablehlo {

// Whether the bytes begin like MLIR bytecode.
bool IsBytecode(std::string_view bytes);

// Reads one module, into the same tree as ReadText for the same program: operations, attributes and
// types are those of current StableHLO. Errors begin with "byte N: " and state the found and the
// expected item; depth and memory are bounded. Items of later versions are UNIMPLEMENTED, by name.
// With an owner of the bytes, which keeps them as they are, large elements are not copied.
Result<std::unique_ptr<mlir::Module>> ReadBytecode(std::string_view bytes,
                                                   std::shared_ptr<const void> owner = nullptr);

}  // namespace kiln::stablehlo

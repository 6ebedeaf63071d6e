// Reads StableHLO programs in MLIR's text: the dialects stablehlo, chlo, func and builtin, check
// and interpreter, in their pretty forms of all versions and in the generic form.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "stablehlo/mlir/operation.h"

namespace kiln::stablehlo {

struct TextOptions {
  int64_t first_line = 1;  // the number of the text's first line in messages and locations
};

// Reads one module. Errors begin with "line L, column C: " and state the found and the expected
// item; depth and memory are bounded. An operation of unknown pretty form is UNIMPLEMENTED, by
// name.
Result<std::unique_ptr<mlir::Module>> ReadText(std::string_view text,
                                               const TextOptions& options = {});

// Files may hold several modules, separated by lines "// -----".
struct Chunk {
  std::string_view text;
  int64_t first_line = 1;
};
std::vector<Chunk> SplitChunks(std::string_view text);

}  // namespace kiln::stablehlo

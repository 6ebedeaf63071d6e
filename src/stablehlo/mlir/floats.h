// The float types of the tree as bits.
#pragma once

#include <cstdint>
#include <optional>

#include "stablehlo/mlir/type.h"

namespace kiln::mlir {

// The bits of a number, rounded once to nearest even. Nullopt where the format has none for it: a
// finite number that is too large, or negative where there is no sign; an infinity or NaN where it
// has no such thing. A format of exponents only rounds as LLVM does: ties up, and 0 to the least.
std::optional<uint64_t> EncodeFloat(FloatKind kind, double value);
// Exact.
double DecodeFloat(FloatKind kind, uint64_t bits);

}  // namespace kiln::mlir

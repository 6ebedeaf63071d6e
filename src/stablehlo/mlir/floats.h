// The float types of the tree as bits.
#pragma once

#include <cstdint>
#include <optional>

#include "stablehlo/mlir/type.h"

namespace kiln::mlir {

// The bits of a finite number, rounded once to nearest even. Nullopt where the format has no finite
// number for it: too large, or for a format of exponents not positive.
std::optional<uint64_t> EncodeFloat(FloatKind kind, double value);
// Exact.
double DecodeFloat(FloatKind kind, uint64_t bits);

}  // namespace kiln::mlir

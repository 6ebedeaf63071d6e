// The float types of the tree as bits.
#pragma once

#include <cstdint>
#include <optional>

#include "stablehlo/mlir/type.h"

namespace kiln::mlir {

// The bits of a number, rounded once to nearest even. Nullopt without a representation in the
// format: for overflow, negative numbers without a sign, infinities, or NaNs. A format of exponents
// only rounds as in LLVM: ties up, and 0 to the least number.
std::optional<uint64_t> EncodeFloat(FloatKind kind, double value);
// Exact.
double DecodeFloat(FloatKind kind, uint64_t bits);

}  // namespace kiln::mlir

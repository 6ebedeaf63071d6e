// Arithmetic of sizes.
#pragma once

#include <cstdint>

namespace kiln {

// Of numbers that are not negative, b > 0.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0); }
constexpr int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

}  // namespace kiln

// Arithmetic of sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace kiln {

// For non-negative numbers, b > 0.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0); }
constexpr int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }
constexpr size_t RoundUp(size_t a, size_t b) { return (a + b - 1) / b * b; }

// Saturating sums and products of non-negative numbers.
constexpr int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}
constexpr int64_t SaturatingMultiply(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

}  // namespace kiln

// Layouts: the order of an array's dimensions in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/shape.h"

namespace kiln {

// Whether these are the numbers of `rank` dimensions, each once.
bool IsPermutation(std::span<const int64_t> order, int64_t rank);

// Copies an array's elements from row-major order to the order of its shape's layout, and back.
void CopyToLayout(const Shape& shape, const std::byte* row_major, std::byte* memory);
void CopyFromLayout(const Shape& shape, const std::byte* memory, std::byte* row_major);

}  // namespace kiln

// Windows that move over an array: their positions and counts.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "ops/attributes.h"

namespace kiln {

// The number of positions of a window along a dimension of `size` elements; nothing if the numbers
// are out of range.
std::optional<int64_t> WindowPlaces(const WindowDimension& window, int64_t size);

// The same along a symbolic dimension that is not empty and no smaller than the window. Fails if
// the stride does not divide it.
Result<Dimension> SymbolicWindowPlaces(const WindowDimension& window, const Dimension& size);

// Whether each position of the window is one element, at the same index.
bool IsTrivial(const WindowDimension& window);

}  // namespace kiln

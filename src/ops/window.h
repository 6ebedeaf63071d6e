// Windows that move over an array: where they are, and how often.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "ops/attributes.h"

namespace kiln {

// How many places a window has along a dimension of `size` elements; nothing where the numbers are
// out of range.
std::optional<int64_t> WindowPlaces(const WindowDimension& window, int64_t size);

// The same along a dimension of symbols that is not empty and no smaller than the window. Fails
// where the stride does not divide it.
Result<Dimension> SymbolicWindowPlaces(const WindowDimension& window, const Dimension& size);

// Whether each place of the window is one element, the one of the same position.
bool IsTrivial(const WindowDimension& window);

}  // namespace kiln

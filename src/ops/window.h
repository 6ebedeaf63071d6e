// Windows that move over an array: where they are, and how often.
#pragma once

#include <cstdint>
#include <optional>

#include "ops/attributes.h"

namespace kiln {

// How many places a window has along a dimension of `size` elements; nothing where the numbers are
// out of range.
std::optional<int64_t> WindowPlaces(const WindowDimension& window, int64_t size);

// Whether each place of the window is one element, the one of the same position.
bool IsTrivial(const WindowDimension& window);

}  // namespace kiln
